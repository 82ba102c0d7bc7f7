package methodrules

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Locked is a unary method with a Lock.
type Locked struct {
	*aspect.Mark // for the interceptor

	Methods *Methods // all methods of the client that have a Lock
	Entry   *Entry
}

// Lock returns the method of an interceptor for the function Lock of package pkg. The same rule for the same method gives
// the same entry.
func Lock(pkg string, locks *core.Client, method, key string, further []ruleset.Rule) (*Locked, error) {
	rule, err := aspect.LockRule(key, further)
	m, problem := lockMethodsOf(pkg, locks)
	if err := errors.Join(err, problem); err != nil {
		return nil, err
	}
	r, err := m.lock(method, rule)
	if err != nil {
		return nil, err
	}
	mark := r.returned.Watch(m.methods.Aspect, &ruleset.Problem{
		Endpoint: r.entry.Endpoint, Message: "Lock: the program has dropped the interceptor, so it locks nothing: give it to the server",
	})
	return &Locked{Mark: mark, Methods: m.methods, Entry: r.entry}, nil
}

// lockMethods holds the methods of a client that have a Lock. Their rules are in no set.
type lockMethods struct {
	methods *Methods

	mu    sync.Mutex
	rules map[string]*lockRule // by method
}

type lockRule struct {
	rule     ruleset.Rule
	entry    *Entry
	returned aspect.Returned // the interceptors
}

// lockMethodsKey is the key of the value that lockMethodsOf keeps on a client. It contains the package.
type lockMethodsKey struct{ pkg string }

// lockMethodsOf returns the methods of a client that have a Lock of package pkg.
func lockMethodsOf(pkg string, locks *core.Client) (*lockMethods, error) {
	a, err := aspect.Of(locks)
	if err != nil {
		return nil, err
	}
	shared := locks.ForAdapters().Shared(lockMethodsKey{pkg}, func() any {
		c := newConfig(pkg)
		c.unguarded = func(Shape) string { return "" }
		return &lockMethods{methods: newMethods(c, a), rules: map[string]*lockRule{}}
	})
	return shared.(*lockMethods), nil //nolint:errcheck,forcetypeassert // the only value under this key
}

// names returns the methods that have a Lock, sorted.
func (m *lockMethods) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.rules))
}

// lock compiles a rule for a method and puts it into force. A second rule for the method is an error, because a call
// passes the Lock interceptors of a client only once: the second rule would have no effect.
func (m *lockMethods) lock(method string, rule ruleset.Rule) (*lockRule, error) {
	d := m.methods.Config.describe(method)
	if err := checkLockable(method, d); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, is := m.rules[method]; is {
		if reflect.DeepEqual(before.rule, rule) {
			return before, nil
		}
		return nil, errors.New("the method has a Lock with another rule: use a guard, which takes several rules for a method")
	}
	e := m.methods.registry.Compile(Key{Path: method, Shape: shapeOf(d)}, rule)
	if e.Err != nil {
		return nil, e.Err
	}
	m.methods.registry.Place(e)
	m.rules[method] = &lockRule{rule: rule, entry: e}
	return m.rules[method], nil
}

// checkLockable returns an error for a method that a Lock cannot serve.
func checkLockable(method string, d protoreflect.MethodDescriptor) error {
	if d == nil {
		return errors.New("the method is not known: write it as its generated constant does, such as " +
			`"/shop.v1.Orders/Pay", and import the generated package; a guard takes methods without a descriptor`)
	}
	if full := fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()); method != full {
		return fmt.Errorf("not a full method: write %q", full)
	}
	if s := shapeOf(d); !s.unary() {
		return fmt.Errorf("the method is %s: use a guard, which takes streams", s)
	}
	if rules, problems := optionsOf(d); len(rules)+len(problems) > 0 {
		return errors.New("the .proto file of the method declares a rule for it: use a guard, which applies that rule, or remove it there")
	}
	return nil
}
