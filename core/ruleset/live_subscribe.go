package ruleset

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
)

// subscriber takes over every set. It is guarded by the calls mutex of its [Live].
type subscriber struct {
	prepare Prepare
	commit  func() // for the set that is prepared
	gone    atomic.Bool
}

// Subscribe implements [Provider]. It waits while another subscriber prepares or
// commits, but not for the file. A panic in prepare or commit is an error.
//
// In a commit, Current is the set that is committed.
//
// cancel may be called at any time, also from prepare and commit, and any number of
// times. It does not wait for a call that has begun: the error of that prepare counts
// no more, and its commit is not called.
func (l *Live) Subscribe(prepare Prepare) (cancel func(), err error) {
	l.calls.Lock()
	defer l.calls.Unlock()
	one := &subscriber{prepare: prepare}
	if err := prepareAll([]*subscriber{one}, l.Current()); err != nil {
		return nil, err
	}
	if err := commitAll([]*subscriber{one}); err != nil {
		return nil, err
	}
	l.forget()
	l.subscribers = append(l.subscribers, one)
	return func() { one.gone.Store(true) }, nil
}

// replace takes next into force, or changes nothing. The caller has the turn.
//
// The set is swapped after all subscribers have prepared and before they commit. So
// what a commit does and wakes finds the set in Current that it was told of, and a
// commit that panics cannot leave Current behind the others. Between the two, Current
// is ahead of what subscribers do, which harms nobody: all of them have agreed to it.
//
// Other locks are refused only where nothing else is wrong: a mistake in a key makes
// another lock, too, and is to be told as what it is.
func (l *Live) replace(next *Set) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	l.forget()
	if err := prepareAll(l.subscribers, next); err != nil {
		return err
	}
	refused, _ := CompareLocks(l.Current(), next)
	if err := Invalid(refused...); err != nil {
		return err
	}
	l.current.Store(next)
	return commitAll(l.subscribers)
}

// forget drops those who cancelled. cancel itself does not: it would have to wait.
func (l *Live) forget() {
	l.subscribers = slices.DeleteFunc(l.subscribers, func(one *subscriber) bool { return one.gone.Load() })
}

// prepareAll asks every subscriber, so that all problems are reported at once.
func prepareAll(list []*subscriber, next *Set) error {
	var errs []error
	for _, one := range list {
		if one.gone.Load() {
			continue // cancelled by one before it
		}
		if err := one.ready(next); !one.gone.Load() {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// commitAll lets every subscriber change over. None can refuse any more: where one
// panics, the others still have to follow.
func commitAll(list []*subscriber) error {
	var errs []error
	for _, one := range list {
		if !one.gone.Load() && one.commit != nil {
			errs = append(errs, one.changeOver())
		}
	}
	return errors.Join(errs...)
}

func (s *subscriber) ready(next *Set) (err error) {
	defer caught("preparing the new rules", &err)
	s.commit = nil
	s.commit, err = s.prepare(next)
	return err
}

func (s *subscriber) changeOver() (err error) {
	defer caught("changing over to the new rules, which are in force elsewhere", &err)
	s.commit()
	return nil
}

// caught, deferred, makes an error of a panic in somebody's code, with the place where it was.
func caught(doing string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("ruleset: panic while %s: %v\n%s", doing, v, debug.Stack())
	}
}
