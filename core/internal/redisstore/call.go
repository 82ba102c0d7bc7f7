package redisstore

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Call is one prepared script with a typed reply; see [wire.Call]. Its errors contain advice if the
// client does not fit its server.
type Call[T any] struct {
	wire.Call

	store *Store
	read  func(reply any) (T, error)
	did   func(answer T) bool // reports whether the script granted or extended a lock; nil: replicas need not acknowledge it
}

func typed[T any](s *Store, c wire.Call, read func(reply any) (T, error)) Call[T] {
	return Call[T]{Call: c, store: s, read: read}
}

// Wait sends the call and waits for the answer until ctx is done or limit passes. If the fate is Unknown,
// the call may still be on its way, and Wait may be called again.
func (c *Call[T]) Wait(ctx context.Context, limit time.Time) (T, wire.Fate, error) {
	return c.typed(c.Call.Wait(ctx, limit))
}

// Late returns the answer of a call that Wait gave up, if it arrived since. Otherwise the fate is
// Unknown.
func (c *Call[T]) Late() (T, wire.Fate, error) { return c.typed(c.Call.Late()) }

// typed reads a reply, if there is one. With the error of a shortfall it also returns the answer,
// because the script took effect.
func (c *Call[T]) typed(reply any, fate wire.Fate, err error) (T, wire.Fate, error) {
	if err != nil {
		c.store.learn(err)
		var none T
		return none, fate, advised(err, c.store.Clustered())
	}
	v, err := c.read(reply)
	if err == nil && c.did != nil && c.did(v) {
		err = c.Shortfall()
	}
	return v, fate, err
}

// acknowledged makes the call wait until replicas acknowledge the effect of the script, if the Store is
// configured so.
func (c Call[T]) acknowledged(did func(answer T) bool) Call[T] {
	c.Acknowledge()
	c.did = did
	return c
}

// question marks a call that changes nothing.
func (c Call[T]) question() Call[T] {
	c.OnHang(wire.SendsAgain)
	return c
}

// once marks a call whose answer would differ the second time.
func (c Call[T]) once() Call[T] {
	c.OnHang(wire.WaitsOn)
	return c
}
