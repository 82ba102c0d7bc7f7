package core

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// ForAdapters returns the methods that only adapters need, such as package ginlock. They are not part of the stable API.
// Programs do not need them.
func (c *Client) ForAdapters() forAdapters { return forAdapters{c} } //nolint:revive // so that what is not stable is not listed among the rest

// forAdapters has the methods of a client for adapters.
type forAdapters struct{ client *Client }

// Observers returns the observers given to [WithObserver], in order. Adapters notify those that
// observe rules.
func (a forAdapters) Observers() []*Observer { return slices.Clone(a.client.cfg.observers.given) }

// MaxNameLength returns the length of the longest name of a lock in bytes: [WithMaxKeyLength] less the prefix. With a
// [WithNameMapper] it maps some names that consist of the letter x and returns the length of the longest one whose key
// fits, which costs time at start-up. Acquire measures the key itself.
func (a forAdapters) MaxNameLength() int { return a.client.cfg.longestName() }

// MaxKeyLength returns the limit of [WithMaxKeyLength].
func (a forAdapters) MaxKeyLength() int { return a.client.cfg.maxKeyLength }

// LockOf returns the lock with a name and a kind, as written in rules. permits is for [KindSemaphore]. LockOf returns
// false for a kind without holders, such as a latch, for a group lock, and for an unknown kind.
func (a forAdapters) LockOf(kind Kind, name string, permits int) (Lock, bool) {
	for _, k := range a.client.kinds.Keyed() {
		if k.Name != string(kind) || k.Holds == redisstore.Unheld {
			continue
		}
		l := Lock{client: a.client, kind: k, name: name}
		if k.Shares == redisstore.Limited {
			l.demand = strconv.Itoa(permits)
		}
		return l, true
	}
	return Lock{}, false
}

// Refusal returns the error with which an acquisition of any single lock would fail at once, as far as the client knows
// that without asking Redis: [ErrInvalid]; [ErrClosed]; [ErrUnavailable] while Redis is known to be down; or
// [ErrTooManyWaiters] if the call may wait. It returns nil if Acquire would get further. It is for callers for which
// the name of the lock is expensive to find, for instance in the body of a request. Refusal reserves nothing: the
// result may differ a moment later. A caller that holds a lock of this or another client, which it may re-enter, is not
// refused because of the number of waiters.
func (a forAdapters) Refusal(ctx context.Context, opts ...AcquireOption) error {
	c := a.client
	var w acquire.Wish
	if _, _, err := c.cfg.readOptions(&w, c.kinds.Reentrant, opts); err != nil {
		return err
	}
	if c.isClosing() {
		return ErrClosed
	}
	if !c.store.Clustered() { // in a Cluster the node of the key counts
		if err := c.failFast(ctx, ""); err != nil {
			return err
		}
	}
	if w.MayWait() && innermost(ctx) == nil && c.queues.Full() {
		return ErrTooManyWaiters
	}
	return nil
}

// FindThrough supports frameworks whose own context type does not lead to the context of its request. The Value of such
// a context for key has to be the request: a value with a method Context() context.Context, such as an *http.Request.
// If the framework's context carries no lock, Acquire uses the locks that the request carries at that time. A second
// call with the same key changes nothing.
//
// [Held] and [MustHold] are not tied to a client and do not look there.
func (a forAdapters) FindThrough(key any) {
	for {
		known := a.client.carriers.keys.Load()
		var next []any
		if known != nil {
			next = *known
		}
		if slices.Contains(next, key) {
			return
		}
		next = append(slices.Clip(next), key)
		if a.client.carriers.keys.CompareAndSwap(known, &next) {
			return
		}
	}
}

// Shared returns the value that an adapter keeps for this client under a key. The first call of a key calls create.
// create may itself call Shared with another key.
func (a forAdapters) Shared(key any, create func() any) any {
	value, _ := a.client.shared.LoadOrStore(key, sync.OnceValue(create))
	return value.(func() any)() //nolint:errcheck,forcetypeassert // the map has no other values
}
