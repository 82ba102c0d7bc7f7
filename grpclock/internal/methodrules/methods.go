package methodrules

import (
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Methods are the methods of a program under their rules. Make them with [New]. They
// are safe for concurrent use.
type Methods struct {
	Config *Config
	Aspect *aspect.Aspect

	registry *aspect.Registry[Key, *Method]
	table    *aspect.Table[Key, *Method]
}

// Key is what the methods are known by: callers of one path may see it in several
// shapes.
type Key struct {
	Path  string
	Shape Shape
}

// Entry is a method under its rules; Extra is there unless the rules of several layers
// do not go together.
type Entry = aspect.Entry[*Method]

// New begins to follow the rules that the options of a package name. The error has every
// problem. hint says what to do about a rule that matches no method, "" for the usual.
// unguarded says why no call of methods of a shape comes to the guard, "" if they may.
func New[O ~func(*Config) error](pkg, hint string, unguarded func(Shape) string, locks *core.Client, opts []O) (*Methods, error) {
	c := &Config{pkg: pkg, hint: hint, unguarded: unguarded, Fallbacks: map[string]Fallback{}, StreamFallbacks: map[string]any{}, serverFirst: map[string]bool{}}
	errs := append(aspect.Apply(pkg+": New: ", c, opts), c.prefixed(c.sources.Check()...), c.checkVariables())
	middle, err := aspect.New(locks)
	if err != nil {
		errs = append(errs, c.errorf("New: %w", err))
	}
	rules, err := c.sources.Provider()
	if err := errors.Join(append(errs, c.prefixed(err))...); err != nil {
		return nil, err
	}
	m := &Methods{Config: c, Aspect: middle}
	m.registry = aspect.NewRegistry(middle, m.adapter())
	if m.table, err = m.registry.Table(rules); err != nil {
		return nil, c.errorf("New: %w", err)
	}
	return m, nil
}

// adapter says how methods are compiled and judged.
func (m *Methods) adapter() aspect.Adapter[Key, *Method] {
	c := m.Config
	return aspect.Adapter[Key, *Method]{
		Transport: ruleset.TransportGRPC,
		Endpoint:  func(k Key) ruleset.Endpoint { return ruleset.GRPC(k.Path) },
		Declared:  func(k Key) ([]ruleset.Declared, []*ruleset.Problem) { return optionsOf(c.describe(k.Path)) },
		Compile:   m.compile,
		Changes:   func(k Key) bool { return protorules.NeedsRule(k.Path, c.describe(k.Path)) },
		Unguarded: func(_ ruleset.Provider, k Key) string { return c.unguarded(k.Shape) },
		Named: func(e ruleset.Endpoint) (Key, bool) { // what the .proto says is not known without a descriptor
			return Key{Path: e.Path}, c.describe(e.Path) != nil
		},
		Hint: c.hint,
	}
}

// optionsOf are the rules that the .proto file declares around a method.
func optionsOf(d protoreflect.MethodDescriptor) ([]ruleset.Declared, []*ruleset.Problem) {
	if d == nil {
		return nil, nil
	}
	return protorules.Of(d)
}

// Len is how many methods are remembered.
func (m *Methods) Len() int { return m.table.Len() }

// Registered gives the rules of a method that the program has registered, nil if it has
// none.
func (m *Methods) Registered(k Key) *Entry { return m.table.At(k) }

// Unregistered gives the rules of a method that may have any name which a caller writes,
// nil if it has none. It may be registered in the shape of k all the same.
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
	return m.stray(k)
}

// stray gives the rules of a method that is neither registered nor described, so
// that it has those of wildcards only (or was left out of [Methods.Check]). It is
// compiled and counted under the rule's name: a server of unknown services must not
// keep a name for whatever it is asked for.
func (m *Methods) stray(k Key) *Entry {
	for {
		set := m.table.Set()
		rules := set.Match(ruleset.GRPC(k.Path))
		if rules == nil {
			return nil
		}
		e := m.table.At(Key{rules[0].Endpoint.Path, k.Shape})
		if m.table.Set() == set { // else it may be of a set that a reload has just put into force
			return e
		}
	}
}

// Check judges the rules of all methods, those of the Checks before included, and more
// errors with them. Observers are notified of the warnings.
func (m *Methods) Check(keys []Key, more ...error) error {
	report := m.registry.Check(keys...)
	for _, err := range more {
		report.Add(ruleset.Endpoint{}, err)
	}
	m.checkServerFirst(report, keys)
	return m.Aspect.Conclude(report)
}

// checkServerFirst reports names given to WithServerFirst that do not exist.
func (m *Methods) checkServerFirst(report *aspect.Report, keys []Key) {
	judge := aspect.Judge{Transport: ruleset.TransportGRPC, Hint: "remove the name, or register the service before Check"}
	for _, k := range keys {
		judge.Endpoints = append(judge.Endpoints, ruleset.GRPC(k.Path))
	}
	for _, path := range slices.Sorted(maps.Keys(m.Config.serverFirst)) {
		if e := ruleset.GRPC(path); !slices.Contains(judge.Endpoints, e) {
			report.Add(e, &ruleset.Problem{Endpoint: e, Message: "WithServerFirst: " + judge.Missing(e)})
		}
	}
}

// MisconfiguredError is why a method cannot work, or why a call cannot: the mistake is
// the program's, and not for clients.
type MisconfiguredError struct{ Reason error }

// Error is the text of the reason.
func (e *MisconfiguredError) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e *MisconfiguredError) Unwrap() error { return e.Reason }
