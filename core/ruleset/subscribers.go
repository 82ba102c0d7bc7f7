package ruleset

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// subscribers are the adapters that change over to each new set of a [Live] set.
type subscribers struct {
	calls sync.Mutex    // held while subscribers are called, so that calls never overlap
	list  []*subscriber // guarded by calls: in the order in which they subscribed
}

// subscriber is guarded by the calls mutex of its list.
type subscriber struct {
	prepare  Prepare
	commit   func() // the commit for the set that was prepared last
	canceled atomic.Bool
}

// add prepares and commits a subscriber for the current set.
func (s *subscribers) add(prepare Prepare, current func() *Set) (cancel func(), err error) {
	s.calls.Lock()
	defer s.calls.Unlock()
	one := &subscriber{prepare: prepare}
	if err := prepareAll([]*subscriber{one}, current()); err != nil {
		return nil, err
	}
	if err := commitAll([]*subscriber{one}); err != nil {
		return nil, err
	}
	s.removeCanceled()
	s.list = append(s.list, one)
	return func() { one.canceled.Store(true) }, nil
}

// replace makes all subscribers change over to next. If one of them or swap refuses it, nothing changes.
//
// swap makes next the current set, after all subscribers have prepared and before they commit. So a call that
// a commit wakes finds the new set, and a panic in a commit cannot leave the old set current. Until they
// commit, subscribers work with a set that is older than the current one. That is harmless, because all of
// them have accepted the new one.
func (s *subscribers) replace(next *Set, swap func() error) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	s.removeCanceled()
	if err := prepareAll(s.list, next); err != nil {
		return err
	}
	if err := swap(); err != nil {
		return err
	}
	return commitAll(s.list)
}

// removeCanceled removes the subscribers that were canceled. cancel itself does not remove them, because it
// would have to wait for calls.
func (s *subscribers) removeCanceled() {
	s.list = slices.DeleteFunc(s.list, func(one *subscriber) bool { return one.canceled.Load() })
}

// prepareAll calls every subscriber even after an error, so that all problems are reported at
// once.
func prepareAll(list []*subscriber, next *Set) error {
	var errs []error
	for _, one := range list {
		if one.canceled.Load() {
			continue // by an earlier subscriber
		}
		if err := one.ready(next); !one.canceled.Load() {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// commitAll makes every subscriber change over. If one panics, it still calls the others, because none of
// them can refuse the set any more.
func commitAll(list []*subscriber) error {
	var errs []error
	for _, one := range list {
		if !one.canceled.Load() && one.commit != nil {
			errs = append(errs, one.changeOver())
		}
	}
	return errors.Join(errs...)
}

func (s *subscriber) ready(next *Set) (err error) {
	defer recoverAs("preparing the new rules", &err)
	s.commit = nil
	s.commit, err = s.prepare(next)
	return err
}

func (s *subscriber) changeOver() (err error) {
	defer recoverAs("changing over to the new rules, which are in force elsewhere", &err)
	s.commit()
	return nil
}

// recoverAs, when deferred, sets err to an error for a panic in a caller's function, with the
// stack.
func recoverAs(doing string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("ruleset: panic while %s: %v\n%s", doing, v, debug.Stack())
	}
}
