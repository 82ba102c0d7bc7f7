package ruleset

import (
	"errors"
	"fmt"
	"runtime/debug"
)

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
	return l.subscribers.change(next, func() error {
		err := Invalid(Rekeyed(l.Current(), next)...)
		if err == nil {
			l.current.Store(next)
		}
		return err
	})
}

// prepared is a subscriber that agreed.
type prepared struct {
	*subscriber
	commit func()
}

// prepareAll asks every subscriber, so that all problems are reported at once.
func prepareAll(list []*subscriber, next *Set) ([]prepared, error) {
	var ready []prepared
	var errs []error
	for _, one := range list {
		if one.gone.Load() {
			continue // cancelled by one before it
		}
		commit, err := one.prepared(next)
		if !one.gone.Load() {
			ready, errs = append(ready, prepared{one, commit}), append(errs, err)
		}
	}
	return ready, errors.Join(errs...)
}

// commitAll lets every subscriber change over. None can refuse any more: where one
// panics, the others still have to follow.
func commitAll(ready []prepared) error {
	var errs []error
	for _, p := range ready {
		if !p.gone.Load() && p.commit != nil {
			errs = append(errs, p.changeOver())
		}
	}
	return errors.Join(errs...)
}

func (s *subscriber) prepared(next *Set) (commit func(), err error) {
	defer caught("preparing the new rules", &err)
	return s.prepare(next)
}

func (p prepared) changeOver() (err error) {
	defer caught("changing over to the new rules, which are in force elsewhere", &err)
	p.commit()
	return nil
}

// caught, deferred, makes an error of a panic in somebody's code, with the place where it was.
func caught(doing string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("ruleset: panic while %s: %v\n%s", doing, v, debug.Stack())
	}
}
