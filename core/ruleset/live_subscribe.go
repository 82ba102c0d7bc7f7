package ruleset

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Subscribe implements [Provider]. Neither it nor cancel waits for a reload.
//
// Every set that replaces the one which Current returns after Subscribe is prepared
// by the subscriber. So subscribe first, then read Current, and let nothing that was
// made of it replace what a commit has put in place meanwhile: read Current, and put
// in place what was made of it, under a mutex that commit takes, too.
//
// cancel may be called at any time, from a call of the subscriber, too. It does not
// wait for a call that has begun. The error of a prepare that has begun counts no
// more, and its commit is not called.
func (l *Live) Subscribe(prepare Prepare) (cancel func()) {
	return l.subscribers.add(prepare)
}

// subscribers are those who asked to be called, in that order.
type subscribers struct {
	mu    sync.Mutex // never held during a call of theirs
	list  []*subscriber
	count int // of all that there ever were
}

type subscriber struct {
	prepare Prepare
	number  int // from 1, in the order of subscribing
	gone    atomic.Bool
}

func (s *subscribers) add(prepare Prepare) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	one := &subscriber{prepare: prepare, number: s.count}
	s.list = append(s.list, one)
	return func() { s.remove(one) }
}

func (s *subscribers) remove(one *subscriber) {
	one.gone.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *subscriber) bool { return other == one })
}

// after returns those with higher numbers. When there are none it calls otherwise,
// and nobody can subscribe in between.
func (s *subscribers) after(number int, otherwise func()) (later []*subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		if one.number > number {
			later = append(later, one)
		}
	}
	if len(later) == 0 {
		otherwise()
	}
	return later
}
