package ruleset

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// replace takes next into force, or changes nothing. The caller has the turn.
//
// The set is swapped before the subscribers commit: in a commit, Current is already
// the new set. So a subscriber that makes itself ready from Current while a reload
// overtakes it either has read the new set, or is called to commit later. Between
// swap and commit Current is ahead of what the subscribers do, which harms nobody:
// all of them have agreed to the set by then.
func (l *Live) replace(next *Set) error {
	if err := Invalid(Rekeyed(l.Current(), next)...); err != nil {
		return err
	}
	var ready []*prepared
	asked := 0 // the number of the last subscriber that was asked
	for {
		later := l.subscribers.after(asked, func() { l.current.Store(next) })
		if len(later) == 0 {
			return commit(ready)
		}
		more, err := prepare(later, next)
		if err != nil {
			return err
		}
		ready = append(ready, more...)
		asked = later[len(later)-1].number
	}
}

// prepared is a subscriber that agreed.
type prepared struct {
	*subscriber
	commit func()
}

// prepare asks every subscriber, so that all problems are reported at once.
func prepare(list []*subscriber, next *Set) ([]*prepared, error) {
	var ready []*prepared
	var errs []error
	for _, one := range list {
		if one.gone.Load() {
			continue
		}
		p := &prepared{subscriber: one}
		err := caught("preparing the new rules", func() error {
			var err error
			p.commit, err = one.prepare(next)
			return err
		})
		if one.gone.Load() {
			continue
		}
		ready, errs = append(ready, p), append(errs, err)
	}
	return ready, errors.Join(errs...)
}

// commit lets every subscriber change over. None can refuse any more: where one
// panics, the others still have to follow.
func commit(ready []*prepared) error {
	var errs []error
	for _, p := range ready {
		if p.gone.Load() || p.commit == nil {
			continue
		}
		errs = append(errs, caught("changing over to the new rules, which are in force elsewhere", func() error {
			p.commit()
			return nil
		}))
	}
	return errors.Join(errs...)
}

// caught makes an error of a panic in somebody's code, with the place where it was.
func caught(doing string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("ruleset: panic while %s: %v\n%s", doing, v, debug.Stack())
		}
	}()
	return call()
}
