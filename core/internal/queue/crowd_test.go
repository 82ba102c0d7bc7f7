package queue_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// crowd simulates many callers that want a few keys. The callers wait, attempt and sleep like callers of a
// client. redis maps each key to its holder.
type crowd struct {
	*queue.Queues

	mu    sync.Mutex
	redis map[string]string
	n     int
	turns map[string]int
}

// acquires takes a free key for a new field.
func (c *crowd) acquires(key string) (field string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis[key] != "" {
		return c.redis[key], false
	}
	c.n++
	c.redis[key] = fmt.Sprint("f", c.n)
	return c.redis[key], true
}

// moves replaces a field with a new one, or removes it.
func (c *crowd) moves(key, from string, hand bool) (field string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis[key] != from {
		panic("two holders")
	}
	if hand {
		c.n++
		field = fmt.Sprint("f", c.n)
	}
	c.redis[key] = field
	return field
}

// wait runs one caller, which gives up after a while.
func (c *crowd) wait(key string, patience time.Duration) *holder {
	w := &queue.Waiter{Wish: queue.Wish{Kind: "plain", Since: time.Now(), Until: time.Now().Add(patience)}}
	if c.Join(key, w, time.Now()) != nil {
		return nil
	}
	for {
		s := c.Next(w, time.Now())
		switch {
		case s.Grant != nil:
			c.Accept(w)
			return s.Grant.(*holder)
		case s.Attempt:
			at := time.Now()
			if field, ok := c.acquires(key); ok {
				h := &holder{field: field}
				c.RecordGrant(key, w, queue.Grant{Holder: h, Kind: "plain", Sent: at}, time.Now())
				return h
			}
			c.RecordRefusal(w, queue.Refusal{TTL: -1}, queue.Stranger, time.Now())
			if c.NeedsSubscription(w) {
				t := &subscription{released: func() { c.WakeToCheck(key, "") }}
				t.confirmed.Store(true)
				c.Subscribe(w, t)
			}
			continue
		}
		d := time.Until(w.Until)
		if s.Sleep > 0 {
			d = min(d, s.Sleep)
		}
		select {
		case <-w.Signal():
		case <-time.After(d):
			if c.Poll(w); time.Now().Before(w.Until) {
				continue
			}
			if grant := c.Leave(w, time.Now()); grant != nil {
				c.release(key, grant.(*holder))
			}
			return nil
		}
	}
}

// release hands the lock on, or frees it.
func (c *crowd) release(key string, h *holder) {
	w := c.TakeNext(key, h, time.Now())
	next := &holder{field: c.moves(key, h.field, w != nil)}
	switch {
	case w == nil:
		c.RemoveHolder(key, h, rand.IntN(4)-2, time.Now())
	case !c.CompleteHandOff(w, h, next, time.Now()):
		c.release(key, next)
	}
}

// Every caller gets the lock or gives up, in whatever order the goroutines run. In the bubble only the turns
// take time.
func TestQueues_Crowd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{
			Queues: queue.New(queue.Config{PerKey: 1000, InAll: 10_000}),
			redis:  make(map[string]string), turns: make(map[string]int),
		}
		var group sync.WaitGroup
		const callers, rounds, keys = 64, 50, 3
		for i := range callers {
			group.Go(func() {
				key := fmt.Sprint("k", i%keys)
				for range rounds {
					patience := time.Hour
					if rand.IntN(4) == 0 {
						patience = time.Duration(rand.IntN(3)) * ms
					}
					h := c.wait(key, patience)
					if h == nil {
						continue
					}
					c.mu.Lock()
					c.turns[key]++
					c.mu.Unlock()
					if rand.IntN(20) == 0 {
						time.Sleep(ms) // virtual time
					}
					c.release(key, h)
				}
			})
		}
		group.Go(func() {
			for range 200 {
				key := fmt.Sprint("k", rand.IntN(keys))
				c.RecordMessage(key, time.Now())
				c.Held(key, time.Now())
				c.Listens(key)
				c.Oldest()
				c.CheckKind(key, "other")
				time.Sleep(ms) // virtual time
			}
		})
		group.Wait()
		for key, turns := range c.turns {
			if turns < rounds {
				t.Errorf("%s: %d turns", key, turns)
			}
		}
		if n, live := c.Waiting(), c.Live(); n != 0 || live != 0 {
			t.Errorf("%d waiters and %d queues are left", n, live)
		}
	})
}
