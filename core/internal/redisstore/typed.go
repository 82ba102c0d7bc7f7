package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Call is one script, prepared by an operation, that reads its own reply; see [wire.Call]. An error says what to
// change where the client cannot work on its server.
type Call[T any] struct {
	wire.Call

	store *Store
	read  func(reply any) (T, error)
	did   func(answer T) bool // whether the script has given or prolonged a lock; nil: replicas need not acknowledge it
}

func typed[T any](s *Store, c wire.Call, read func(reply any) (T, error)) Call[T] {
	return Call[T]{Call: c, store: s, read: read}
}

// call prepares a script. args are what EVALSHA wants behind the digest: number of
// keys, arguments; key is the first of the keys.
func (s *Store) call(now time.Time, sc *script, key string, args ...any) wire.Call {
	if sc.sharded != nil && s.Sharded() {
		sc = sc.sharded
	}
	return s.wire.Call(now, sc.Script, key, args...)
}

// Wait sends the call and waits for the answer until ctx or limit ends. With the
// fate Unknown it may still be on its way; then Wait may be called again.
func (c *Call[T]) Wait(ctx context.Context, limit time.Time) (T, wire.Fate, error) {
	return c.typed(c.Call.Wait(ctx, limit))
}

// Late is the answer of a call that Wait has given up, if it has come; else its fate is
// Unknown.
func (c *Call[T]) Late() (T, wire.Fate, error) { return c.typed(c.Call.Late()) }

// typed takes a reply apart, if there is one. With the error of a shortfall the answer is
// what the script has done.
func (c *Call[T]) typed(reply any, fate wire.Fate, err error) (T, wire.Fate, error) {
	if err != nil {
		c.store.learn(err)
		var none T
		return none, fate, c.store.advised(err)
	}
	v, err := c.read(reply)
	if err == nil && c.did != nil && c.did(v) {
		err = c.Shortfall()
	}
	return v, fate, err
}

// acknowledged has the replicas acknowledge what the script does, if the Store wants that.
func (c Call[T]) acknowledged(did func(answer T) bool) Call[T] {
	c.Acknowledge()
	c.did = did
	return c
}

// question is a call that changes nothing.
func (c Call[T]) question() Call[T] {
	c.OnHang(wire.SendsAgain)
	return c
}

// once is a call whose answer would be another one the second time.
func (c Call[T]) once() Call[T] {
	c.OnHang(wire.WaitsOn)
	return c
}

// learn remembers for good that keys have to be sent one by one, if err says so, and reports whether it does.
func (s *Store) learn(err error) bool {
	if s.cluster != nil || !wire.Apart(err) {
		return false
	}
	s.keyByKey.Store(true)
	return true
}

// unexpected is the error for a reply that no version of our scripts gives.
func unexpected(what string, reply any) error {
	return &wire.UnreadableError{Cause: fmt.Errorf("%s: unexpected reply %T %v", what, reply, reply)}
}
