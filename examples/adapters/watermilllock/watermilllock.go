// Package watermilllock puts lock rules around the message handlers of a Watermill router. A rule names a handler. Its key reads
// the variables handler, topic, uuid, metadata and payload:
//
//	rules:
//	  - func: handler/pay-order
//	    key: "order:#{payload.order_id}"
//
// Copy watermilllock.go. The guard is the last middleware of the router; publisher publishes the poison, and
// retry is a middleware.Retry:
//
//	guard, err := watermilllock.New(locking, rules, map[string]any{"pay-order": Order{}}, nil)
//	poison, err := middleware.PoisonQueueWithFilter(publisher, "poison", watermilllock.IsPoison)
//	router.AddMiddleware(poison, retry.Middleware, guard.Middleware)
//
// Inside the guard, the poison queue and the Retry of Watermill do not see its refusals.
//
// If the lock of a message is taken, or if Redis does not answer, the guard nacks the message after a pause, and the broker
// delivers it again. The poison queue must not take such a message, so [IsPoison] is its filter. Do not use
// middleware.InstantAck, because the broker does not deliver an acknowledged message again.
//
// A message without a key, and a message whose handler gives up because it has lost its lock, fail like any other message: the
// guard adds no pause, because Retry or the poison queue may handle the failure. Without them, a message without a key is nacked
// at once, again and again.
//
// The router publishes the messages that a handler returns after the release of the lock, and publishing may fail. So a handler
// that returns messages begins no debounce window.
//
// Close the router first and the lock client after that.
package watermilllock

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// maxPause limits the pause before a message is nacked, because most brokers deliver the next message only after that.
const maxPause = 5 * time.Second

// Guard puts rules around the handlers of a router.
type Guard struct {
	guard *aspect.MessageGuard[*delivery]
	after func(time.Duration) <-chan time.Time // time.After, except in tests
}

// delivery is a message with the messages that its handler returns.
type delivery struct {
	*message.Message
	handler, topic string
	produced       []*message.Message
}

// handle runs a handler. While it runs, ctx is the context of the message.
func (d *delivery) handle(ctx context.Context, handler message.HandlerFunc) (err error) {
	before := d.Context()
	d.SetContext(ctx)
	defer d.SetContext(before) // for middleware that calls the guard again
	d.produced, err = handler(d.Message)
	if len(d.produced) > 0 {
		aspect.CancelDebounce(ctx)
	}
	return err
}

// New returns a guard and checks the rules for handlers. handlers lists the names of the handlers, each with a value of the Go type
// of its payload, or nil if the payload is not JSON. fallbacks may be nil. If rules have problems, the error lists all of them, and
// the guard refuses the messages of these rules. The guard follows reloads of rules.
func New(a *aspect.Aspect, rules ruleset.Provider, handlers map[string]any, fallbacks map[string]message.HandlerFunc) (*Guard, error) {
	messages := aspect.Messages[*delivery]{
		Prefix: "handler/", Noun: "handler", Payloads: handlers, Variables: variables, Fallbacks: map[string]func(context.Context, *delivery) error{},
	}
	for name, handler := range fallbacks {
		messages.Fallbacks[name] = func(ctx context.Context, d *delivery) error { return d.handle(ctx, handler) }
	}
	guard, err := aspect.NewMessageGuard(a, rules, messages)
	if err != nil {
		return nil, err
	}
	return &Guard{guard, time.After}, guard.Check()
}

// Middleware returns next with a lock around it, for [message.Router.AddMiddleware]. The context of the message carries the lock and
// ends when the lock is lost.
func (g *Guard) Middleware(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		ctx := m.Context()
		d := &delivery{Message: m, handler: message.HandlerNameFromCtx(ctx), topic: message.SubscribeTopicFromCtx(ctx)}
		if d.handler == "" {
			return nil, errors.New("watermilllock: the message has no handler: use the middleware in a message.Router")
		}
		o := g.guard.Run(ctx, d.handler, d, func(ctx context.Context, d *delivery) error { return d.handle(ctx, next) })
		if o.Postponed() {
			select {
			case <-g.after(min(o.RetryAfter, maxPause)):
			case <-ctx.Done():
			}
			return nil, answer{o.Refusal(), true}
		}
		if err := o.Result(); err != nil {
			isShutdown := ctx.Err() != nil && !errors.Is(err, core.ErrLost)
			return d.produced, answer{err, isShutdown || errors.Is(err, core.ErrClosed)}
		}
		return d.produced, nil
	}
}

// IsPoison reports whether a message that failed with err belongs in the poison queue. It returns false if the broker has to
// deliver the message again: its lock was not acquired, or a shutdown ended the context of the message. It returns true if the
// handler gave up because it lost its lock. Otherwise the broker would deliver a message that always needs more time than
// max_hold again and again.
func IsPoison(err error) bool {
	a, _ := errors.AsType[answer](err)
	return err != nil && !a.again
}

// answer is the error of a message. A handler may return the answer for an inner message or the refusal of a function: that is
// an ordinary failure, because the handler has run. So the outermost answer counts.
type answer struct {
	error
	again bool // the broker has to deliver the message again
}

func (a answer) Unwrap() error { return a.error }

func variables(payload reflect.Type) []aspect.MessageVariable[*delivery] {
	return []aspect.MessageVariable[*delivery]{
		aspect.TextVariable("handler", func(d *delivery) string { return d.handler }),
		aspect.TextVariable("topic", func(d *delivery) string { return d.topic }),
		aspect.TextVariable("uuid", func(d *delivery) string { return d.UUID }),
		aspect.HeaderVariable("metadata", func(d *delivery) map[string]string { return d.Metadata }),
		aspect.JSONVariable("payload", payload, func(d *delivery) []byte { return d.Payload }),
	}
}
