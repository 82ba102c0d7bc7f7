package aspect

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Of returns the aspect of a lock client under which the Lock functions of all adapters run, such as ginlock.Lock. It
// returns the same aspect for the same client. Its [Aspect.Suspend] is the kill switch of these locks. A guard has a
// separate aspect.
func Of(locks *core.Client) (*Aspect, error) {
	if locks == nil {
		return New(nil) // its error says what to write
	}
	shared := locks.ForAdapters().Shared(ofKey{}, func() any {
		a, err := New(locks)
		return &ofValue{a, err}
	})
	result := shared.(*ofValue) //nolint:errcheck,forcetypeassert // the only value under this key
	return result.aspect, result.err
}

type (
	ofKey   struct{}
	ofValue struct { // the results of New
		aspect *Aspect
		err    error
	}
)

// LockRule returns the rule of a Lock function of an adapter. further has at most one rule, to which LockRule adds the
// key. The rule has no Endpoint, because the adapter knows the endpoint. A rule without any field is an error: its author
// probably wrote a zero, which is not set.
func LockRule(key string, further []ruleset.Rule) (ruleset.Rule, error) {
	var r ruleset.Rule
	switch {
	case len(further) > 1:
		return r, fmt.Errorf("%d rules: write one ruleset.Rule with all further fields", len(further))
	case len(further) == 1:
		r = further[0]
		if reflect.ValueOf(r).IsZero() {
			return r, errors.New("the rule after the key sets no field, because a zero is not set: write WaitTime: ruleset.NoWait for one attempt, or remove the rule")
		}
	}
	switch {
	case r.Key != "" || len(r.Keys) > 0:
		return r, errors.New("the rule has a key besides the argument: remove it from the rule; a guard takes rules with Keys")
	case !r.Endpoint.IsZero():
		return r, fmt.Errorf("the rule has the Endpoint %s: remove it, because the lock is for the place where it stands", r.Endpoint)
	}
	r.Key = key
	return r, nil
}
