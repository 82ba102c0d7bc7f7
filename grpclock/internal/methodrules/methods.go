package methodrules

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Methods holds the methods of a program and their rules. It is safe for concurrent use.
type Methods struct {
	Config  *Config
	Aspect  *aspect.Aspect
	Waiting atomic.Int64 // the bytes of the messages that waiting streams hold

	registry *aspect.Registry[Key, *Method]
	table    *aspect.Table[Key, *Method] // nil for the methods of Lock
	locks    *lockMethods                // the methods of the client that have a Lock; nil there
}

// Entry is a method with its rules. Its Extra is nil if the rules of several layers contradict each
// other.
type Entry = aspect.Entry[*Method]

// New returns the methods of a program and follows the rules in the options of package pkg. Its error joins
// every problem. hint is the advice for a rule that matches no method, "" for the usual advice. unguarded
// returns a message if calls of methods of a shape cannot reach the guard, otherwise "".
func New[O ~func(*Config) error](pkg, hint string, unguarded func(Shape) string, locks *core.Client, opts []O) (*Methods, error) {
	c := newConfig(pkg)
	c.hint, c.unguarded = hint, unguarded
	errs := append(aspect.Apply(pkg+": New: ", c, opts), c.joinErrors(c.sources.Check()...), c.checkVariables())
	shared, err := aspect.New(locks)
	if err != nil {
		errs = append(errs, c.errorf("New: %w", err))
	}
	rules, err := c.sources.Provider()
	if err := errors.Join(append(errs, c.joinErrors(err))...); err != nil {
		return nil, err
	}
	l, err := lockMethodsOf(pkg, locks)
	if err != nil {
		return nil, c.errorf("New: %w", err)
	}
	m := newMethods(c, shared)
	m.locks = l
	m.registry.Include(l.methods.registry)
	if m.table, err = m.registry.Table(rules); err != nil {
		return nil, c.errorf("New: %w", err)
	}
	return m, nil
}

// newMethods returns methods without a table.
func newMethods(c *Config, a *aspect.Aspect) *Methods {
	m := &Methods{Config: c, Aspect: a}
	m.registry = aspect.NewRegistry(a, m.adapter())
	return m
}

// adapter returns the functions with which package aspect compiles and checks methods.
func (m *Methods) adapter() aspect.Adapter[Key, *Method] {
	c := m.Config
	return aspect.Adapter[Key, *Method]{
		Transport: ruleset.TransportGRPC,
		Endpoint:  func(k Key) ruleset.Endpoint { return ruleset.GRPC(k.Path) },
		Declared:  func(k Key) ([]ruleset.Declared, []*ruleset.Problem) { return optionsOf(c.describe(k.Path)) },
		Compile: func(_ *ruleset.Set, k Key, rules []*ruleset.Resolved) (*aspect.Point, *Method, error) {
			return compile(c, m.Aspect, k, rules)
		},
		Changes:   func(k Key) bool { return protorules.NeedsRule(k.Path, c.describe(k.Path)) },
		Unguarded: func(_ ruleset.Provider, k Key) string { return c.unguarded(k.Shape) },
		Named: func(e ruleset.Endpoint) (Key, bool) { // without a descriptor, the options of the .proto file are not known
			return Key{Path: e.Path}, c.describe(e.Path) != nil
		},
		Hint: c.hint,
	}
}

// optionsOf returns the rules that the .proto file declares for a method.
func optionsOf(d protoreflect.MethodDescriptor) ([]ruleset.Declared, []*ruleset.Problem) {
	if d == nil {
		return nil, nil
	}
	return protorules.Of(d)
}

// Len returns the number of methods in the table.
func (m *Methods) Len() int { return m.table.Len() }

// Registered returns the rules of a method that the program has registered, or nil if it has none.
func (m *Methods) Registered(k Key) *Entry { return m.table.At(k) }

// Unregistered returns the rules of a method whose name a caller chose, or nil if it has none.
// The method may also be registered, in the shape of k.
func (m *Methods) Unregistered(k Key) *Entry {
	if e, known := m.table.Find(k); known {
		return e
	}
	k.Shape = Unregistered()
	if e, known := m.table.Find(k); known {
		return e
	}
	if m.Config.describe(k.Path) != nil {
		return m.table.At(k)
	}
	return m.matchWildcards(k)
}

// matchWildcards returns the rules of a method that is neither registered nor has a descriptor. After
// [Methods.Check], only wildcards match such a method. Its entry has the path of the rule as its key, because
// a server of unknown services must not keep every name that a client sends.
func (m *Methods) matchWildcards(k Key) *Entry {
	for {
		set := m.table.Set()
		rules := set.Match(ruleset.GRPC(k.Path))
		if rules == nil {
			return nil
		}
		e := m.table.At(Key{rules[0].Endpoint.Path, k.Shape})
		if m.table.Set() == set { // otherwise the entry may belong to a set that a reload put into force
			return e
		}
	}
}

// Check checks the rules of the given methods and of the methods of earlier calls. It returns their
// problems together with the errors in more, and reports the warnings to the observers.
func (m *Methods) Check(keys []Key, more ...error) error {
	report := m.registry.Check(keys...)
	for _, err := range more {
		report.Add(ruleset.Endpoint{}, err)
	}
	judge := aspect.Judge{Transport: ruleset.TransportGRPC}
	for _, k := range keys {
		judge.Endpoints = append(judge.Endpoints, ruleset.GRPC(k.Path))
	}
	m.checkLocks(report, judge)
	m.checkServerFirst(report, judge)
	return m.Aspect.Conclude(report)
}

// checkLocks warns of methods with a Lock that the program does not have, and reports a guard without any rules.
func (m *Methods) checkLocks(report *aspect.Report, judge aspect.Judge) {
	locked := m.locks.names()
	judge.Hint = "give Check the server that has the Lock, or remove the Lock"
	for _, path := range locked {
		if e := ruleset.GRPC(path); !slices.Contains(judge.Endpoints, e) {
			report.Warn(e, &ruleset.Problem{Endpoint: e, Message: "Lock: " + judge.Missing(e)})
		}
	}
	if len(locked) == 0 && len(m.table.Entries()) == 0 && m.Config.sources.IsEmpty() {
		report.Add(ruleset.Endpoint{}, errors.New("the guard has no rules: no method has any in its .proto file, and neither WithSet nor WithRules was given"))
	}
}

// checkServerFirst reports names of WithServerFirst that are not methods.
func (m *Methods) checkServerFirst(report *aspect.Report, judge aspect.Judge) {
	judge.Hint = "remove the name, or register the service before Check"
	for _, path := range slices.Sorted(maps.Keys(m.Config.serverFirst)) {
		if e := ruleset.GRPC(path); !slices.Contains(judge.Endpoints, e) {
			report.Add(e, &ruleset.Problem{Endpoint: e, Message: "WithServerFirst: " + judge.Missing(e)})
		}
	}
}
