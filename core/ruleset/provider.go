package ruleset

import (
	"errors"
	"reflect"
)

// Provider gives an adapter its rules: a [*Set], which never changes, or a [*Live]
// set, which is replaced when its file is.
type Provider interface {
	// Current is the set in force.
	Current() *Set

	// Subscribe calls prepare, and what it returns, for the set in force, and then for
	// every set that is to replace it, until cancel is called. All subscribers
	// prepare before any commits; one error, and the new set is refused and nobody
	// commits. The error of Subscribe is that of the first prepare: nothing is
	// subscribed then. Calls never overlap, and a reload never falls between the
	// first one and the others. prepare and commit must not call the Provider, so one that
	// passes on the calls of another is not given to a guard beside that other one.
	Subscribe(prepare Prepare) (cancel func(), err error)
}

var (
	_ Provider = (*Set)(nil)
	_ Provider = (*Live)(nil)
)

// CheckProvider is the error of a Provider that is nil, or the nil pointer that an
// ignored error leaves: for adapters. Without it every endpoint would run unlocked.
func CheckProvider(p Provider) error {
	if isNil(p) {
		return errors.New("the rules are nil: give those that ruleset.Open, ruleset.Watch or ruleset.NewSet made without an error")
	}
	return nil
}

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// Prepare makes everything ready to work with the set next, and changes nothing
// before commit is called. commit must not fail and not block.
type Prepare func(next *Set) (commit func(), err error)

// Current is the set itself.
func (s *Set) Current() *Set { return s }

// Subscribe calls prepare once: a Set is never replaced.
func (s *Set) Subscribe(prepare Prepare) (cancel func(), err error) {
	commit, err := prepare(s)
	if err != nil {
		return nil, err
	}
	commit()
	return func() {}, nil
}
