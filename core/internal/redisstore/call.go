package redisstore

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Call is one prepared script with a typed reply; see [wire.Call]. If the client does not fit the
// server, the error contains advice.
type Call[T any] struct {
	wire.Call

	store      *Store
	read       func(reply any) (T, error)
	tookEffect func(answer T) bool // reports whether the script granted or extended a lock; nil: replicas need not acknowledge it
}

func newCall[T any](s *Store, c wire.Call, read func(reply any) (T, error)) Call[T] {
	return Call[T]{Call: c, store: s, read: read}
}

// Wait sends the call and waits for the answer until ctx is done or limit passes. If the fate is Unknown,
// the call may still be on its way, and Wait may be called again.
func (c *Call[T]) Wait(ctx context.Context, limit time.Time) (T, wire.Fate, error) {
	return c.decode(c.Call.Wait(ctx, limit))
}

// Late returns the answer of a call that Wait gave up, if it arrived since. Otherwise the fate is
// Unknown.
func (c *Call[T]) Late() (T, wire.Fate, error) { return c.decode(c.Call.Late()) }

// decode reads a reply, if there is one. With the error of a shortfall it also returns the answer,
// because the script took effect.
func (c *Call[T]) decode(reply any, fate wire.Fate, err error) (T, wire.Fate, error) {
	if err != nil {
		c.store.learn(err)
		var none T
		return none, fate, c.store.explain(err)
	}
	v, err := c.read(reply)
	if err == nil && c.tookEffect != nil && c.tookEffect(v) {
		if !c.store.wrote.Load() {
			c.store.wrote.Store(true)
		}
		err = c.Shortfall()
	}
	return v, fate, err
}

// withAcks makes the call wait until replicas acknowledge the effect of the script, if
// Config.Replication requires it.
func (c Call[T]) withAcks(tookEffect func(answer T) bool) Call[T] {
	c.Acknowledge()
	c.tookEffect = tookEffect
	return c
}

// markReadOnly marks a call that changes nothing, so that Wait may send it twice.
func (c Call[T]) markReadOnly() Call[T] {
	c.OnHang(wire.SendsAgain)
	return c
}

// sendOnce marks a call that would get another answer the second time.
func (c Call[T]) sendOnce() Call[T] {
	c.OnHang(wire.WaitsOn)
	return c
}
