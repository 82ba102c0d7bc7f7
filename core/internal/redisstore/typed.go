package redisstore

import (
	"context"
	"fmt"
	"time"
)

// Call is one script, prepared by an operation and sent by Wait, that reads its own reply. It
// is for one goroutine. It is a value, so that one which is answered at once costs no
// allocation; a copy goes on in its place.
type Call[T any] struct {
	call

	read func(reply any) (T, error)
	did  func(answer T) bool // whether the script has given or prolonged a lock; nil: nobody asks
}

func typed[T any](c call, read func(reply any) (T, error)) Call[T] {
	return Call[T]{call: c, read: read}
}

// Wait sends the call and waits for the answer until ctx or limit ends. With the
// fate Unknown it may still be on its way; then Wait may be called again.
func (c *Call[T]) Wait(ctx context.Context, limit time.Time) (T, Fate, error) {
	return c.typed(c.call.wait(ctx, limit))
}

// Late is the answer of a call that Wait has given up, if it has come; else its fate is
// Unknown.
func (c *Call[T]) Late() (T, Fate, error) { return c.typed(c.call.late()) }

// typed takes a reply apart, if there is one. With the error of a shortfall the answer is
// what the script has done.
func (c *Call[T]) typed(reply any, fate Fate, err error) (T, Fate, error) {
	if err != nil {
		var none T
		return none, fate, err
	}
	v, err := c.read(reply)
	if err == nil && c.acked && c.did(v) && c.cmd.ack.short != nil {
		err = c.cmd.ack.short
	}
	return v, fate, err
}

// acknowledged has the replicas acknowledge what the script does, if the Store wants that.
func (c Call[T]) acknowledged(did func(answer T) bool) Call[T] {
	c.acked, c.did = c.store.cfg.Replication.Acks != NoAcks, did
	return c
}

// unreadableError says that Redis has answered, and that its answer is of no use.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string { return e.cause.Error() }
func (e *unreadableError) Unwrap() error { return e.cause }

// unexpected is the error for a reply that no version of our scripts gives.
func unexpected(what string, reply any) error {
	return &unreadableError{fmt.Errorf("%s: unexpected reply %T %v", what, reply, reply)}
}
