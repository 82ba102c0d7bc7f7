package ruleset

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Subscribe implements [Provider]. It waits while another subscriber prepares or
// commits, but not for the file. A panic in prepare or commit is an error.
//
// In a commit, Current is the set that is committed.
//
// cancel may be called at any time, also from prepare and commit, and any number of
// times. It does not wait for a call that has begun: the error of that prepare counts
// no more, and its commit is not called.
func (l *Live) Subscribe(prepare Prepare) (cancel func(), err error) {
	return l.subscribers.add(prepare, l.current.Load)
}

// subscribers are those who take over every set, in the order in which they came.
type subscribers struct {
	mu   sync.Mutex // held while they are called, so that calls never overlap
	list []*subscriber
}

type subscriber struct {
	prepare Prepare
	gone    atomic.Bool
}

func (s *subscribers) add(prepare Prepare, current func() *Set) (cancel func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &subscriber{prepare: prepare}
	ready, err := prepareAll([]*subscriber{one}, current())
	if err == nil {
		err = commitAll(ready)
	}
	if err != nil {
		return nil, err
	}
	s.forget()
	s.list = append(s.list, one)
	return func() { one.gone.Store(true) }, nil
}

// change prepares all subscribers for next, and if all agree calls swap, and if that
// agrees, too, lets them commit.
func (s *subscribers) change(next *Set, swap func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	ready, err := prepareAll(s.list, next)
	if err != nil {
		return err
	}
	if err := swap(); err != nil {
		return err
	}
	return commitAll(ready)
}

// forget drops those who cancelled. cancel itself does not: it would have to wait.
func (s *subscribers) forget() {
	s.list = slices.DeleteFunc(s.list, func(one *subscriber) bool { return one.gone.Load() })
}
