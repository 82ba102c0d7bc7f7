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

// typed takes a reply apart, if there is one.
func (c *Call[T]) typed(reply any, fate Fate, err error) (T, Fate, error) {
	if err != nil {
		var none T
		return none, fate, err
	}
	v, err := c.read(reply)
	return v, fate, err
}

// unreadableError says that Redis has answered, and that its answer is of no use.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string { return e.cause.Error() }
func (e *unreadableError) Unwrap() error { return e.cause }

// unexpected is the error for a reply that no version of our scripts gives.
func unexpected(what string, reply any) error {
	return &unreadableError{fmt.Errorf("%s: unexpected reply %T %v", what, reply, reply)}
}
