package watermilllock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/watermilllock"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// order is the payload of the messages.
type order struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

func encode(t testing.TB, o order) *message.Message {
	t.Helper()
	payload, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return message.NewMessage(watermill.NewUUID(), payload)
}

func idOf(m *message.Message) string {
	var o order
	_ = json.Unmarshal(m.Payload, &o)
	return o.ID
}

// subscription is a subscriber that delivers each message once.
type subscription struct {
	messages chan *message.Message
	once     sync.Once
}

func newSubscription() *subscription { return &subscription{messages: make(chan *message.Message)} }

// Subscribe returns a channel that is closed when ctx is done. At its Close, a router either calls Close or only cancels ctx.
func (s *subscription) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return s.messages, nil
}

func (s *subscription) Close() error {
	s.once.Do(func() { close(s.messages) })
	return nil
}

// run runs a router until the test ends.
func run(tb testing.TB, add func(*message.Router)) *message.Router {
	tb.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Minute}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	add(router)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(tb.Context())) }()
	<-router.Running()
	tb.Cleanup(func() {
		if err := errors.Join(router.Close(), <-ended); err != nil {
			tb.Error(err)
		}
	})
	return router
}

type resultKey struct{}

// recording sends the result of the guard, or its panic, to the channel in the context of the message.
func recording(h message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) (produced []*message.Message, err error) {
		result, ok := m.Context().Value(resultKey{}).(chan error)
		returned := false
		defer func() {
			if v := recover(); v != nil {
				returned, err = true, fmt.Errorf("panic: %v", v)
			}
			if ok && returned { // not if the handler exits its goroutine
				result <- err
			}
		}()
		produced, err = h(m)
		returned = true
		return produced, err
	}
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.Func("handler/pay")
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: endpoint, ID: "payload.id", Tenant: "payload.tenant",
		Code: func(s failpolicy.Status) int { return s.HTTP },
		Start: func(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
			return adaptertest.ServeMessages(p, endpoint, func(p adaptertest.MessageProgram) (func() error, func(context.Context, adaptertest.Call) error, error) {
				queue := func(m *message.Message) ([]*message.Message, error) { return nil, p.Queue(m.Context(), idOf(m)) }
				guard, problem := watermilllock.New(p.Aspect, p.Rules, map[string]any{"pay": order{}}, map[string]message.HandlerFunc{"queue": queue})
				if guard == nil {
					return nil, nil, problem
				}
				guard.SetAfter(func(time.Duration) <-chan time.Time { return time.After(0) })
				sub := newSubscription()
				run(tb, func(router *message.Router) {
					router.AddMiddleware(recording, guard.Middleware)
					router.AddConsumerHandler("pay", "orders", sub, func(m *message.Message) error { return p.Pay(m.Context(), idOf(m)) })
				})
				deliver := func(ctx context.Context, c adaptertest.Call) error {
					m, result := encode(tb, order{c.ID, c.Tenant}), make(chan error, 1)
					m.SetContext(context.WithValue(ctx, resultKey{}, result))
					sub.messages <- m
					select {
					case err := <-result:
						return err
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return func() error { return problem }, deliver, nil
			})
		},
	})
}

const noWait = `rules:
  - func: handler/*
    key: "order:#{payload.id}"
    wait_time: none
    lease_time: 1h # for tests that shorten it
`

var waits = strings.ReplaceAll(noWait, "wait_time: none", "wait_time: 1h")

// open returns a guard for the handlers "pay" and "cancel".
func open(t *testing.T, rules string) (*redistest.Server, *watermilllock.Guard) {
	t.Helper()
	redis := redistest.New(t)
	locks, err := core.New(redis.Client(), core.WithBackendTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	set, err := ruleset.Load("locks.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	locking, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := watermilllock.New(locking, set, map[string]any{"pay": order{}, "cancel": order{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return redis, guard
}

func TestRouter_OneAtATime(t *testing.T) {
	t.Parallel()
	_, guard := open(t, waits)
	var inside, met atomic.Int32
	var handled sync.WaitGroup
	handler := func(*message.Message) error {
		if inside.Add(1) > 1 {
			met.Add(1)
		}
		time.Sleep(time.Millisecond) // enough time for the other handler to overlap
		inside.Add(-1)
		handled.Done()
		return nil
	}
	queue := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 10}, nil)
	run(t, func(router *message.Router) {
		router.AddMiddleware(guard.Middleware)
		router.AddConsumerHandler("pay", "orders.paid", queue, handler)
		router.AddConsumerHandler("cancel", "orders.canceled", queue, handler)
	})
	for range 5 {
		handled.Add(2)
		if err := errors.Join(queue.Publish("orders.paid", encode(t, order{ID: "42"})), queue.Publish("orders.canceled", encode(t, order{ID: "42"}))); err != nil {
			t.Fatal(err)
		}
	}
	handled.Wait()
	if met.Load() > 0 {
		t.Errorf("%d messages overlapped", met.Load())
	}
}

// A busy message is delivered again, after a pause, and stays out of the poison queue.
func TestRouter_BusyMessageComesAgain(t *testing.T) {
	t.Parallel()
	redis, guard := open(t, noWait)
	redis.Take("order:42", time.Hour)
	var paused atomic.Int32
	guard.SetAfter(func(d time.Duration) <-chan time.Time {
		if d < time.Second || d > 5*time.Second {
			t.Errorf("a pause of %v", d)
		}
		paused.Add(1)
		redis.Free("order:42")
		return time.After(0)
	})
	queue := gochannel.NewGoChannel(gochannel.Config{}, nil)
	poison, err := middleware.PoisonQueueWithFilter(queue, "poison", watermilllock.IsPoison)
	if err != nil {
		t.Fatal(err)
	}
	handled, poisoned := make(chan struct{}), make(chan struct{})
	run(t, func(router *message.Router) {
		router.AddConsumerHandler("pay", "orders", queue, func(*message.Message) error { close(handled); return nil }).AddMiddleware(poison, guard.Middleware)
		router.AddConsumerHandler("poisoned", "poison", queue, func(*message.Message) error { close(poisoned); return nil })
	})
	if err := queue.Publish("orders", encode(t, order{ID: "42"})); err != nil {
		t.Fatal(err)
	}
	select {
	case <-handled:
	case <-poisoned:
		t.Error("the busy message is in the poison queue")
	}
	if paused.Load() != 1 {
		t.Errorf("%d pauses", paused.Load())
	}
}

func TestIsPoison(t *testing.T) {
	t.Parallel()
	_, guard := open(t, noWait)
	for name, test := range map[string]struct {
		err  error
		ends bool // the context of the message ends while the handler runs
		want bool
	}{
		"success":             {nil, false, false},
		"declined":            {errors.New("declined"), false, true},
		"inner lock":          {&aspect.RefusedError{RetryAfter: time.Second}, false, true},
		"canceled by handler": {fmt.Errorf("query: %w", context.Canceled), false, true},
		"shutdown":            {fmt.Errorf("query: %w", context.Canceled), true, false},
		"closed":              {&aspect.RefusedError{Cause: failpolicy.Lost, Reason: core.ErrClosed}, false, false},
	} {
		m := encode(t, order{ID: "42"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.SetContext(ctx)
		err := deliver(t, guard, m, func(*message.Message) ([]*message.Message, error) {
			if test.ends {
				cancel()
			}
			return nil, test.err
		})
		if got := watermilllock.IsPoison(err); got != test.want {
			t.Errorf("%s: got %v for %v", name, got, err)
		}
	}
}

// deliver runs one message through a router and returns the result of the middleware.
func deliver(t *testing.T, guard *watermilllock.Guard, m *message.Message, handler message.HandlerFunc, around ...message.HandlerMiddleware) error {
	t.Helper()
	sub, result := newSubscription(), make(chan error, 1)
	run(t, func(router *message.Router) {
		router.AddMiddleware(append(append([]message.HandlerMiddleware{recording}, around...), guard.Middleware)...)
		router.AddHandler("pay", "orders", sub, "receipts", gochannel.NewGoChannel(gochannel.Config{}, nil), handler)
	})
	m.SetContext(context.WithValue(m.Context(), resultKey{}, result))
	sub.messages <- m
	return <-result
}

// A retry in the router sees the context of the message and not the context of the last attempt.
func TestRouter_RetryAround(t *testing.T) {
	t.Parallel()
	_, guard := open(t, noWait)
	attempts := 0
	err := deliver(t, guard, encode(t, order{ID: "42"}), func(m *message.Message) ([]*message.Message, error) {
		if attempts++; attempts == 1 {
			return nil, errors.New("declined")
		}
		return nil, m.Context().Err()
	}, middleware.Retry{MaxRetries: 3, InitialInterval: time.Millisecond}.Middleware)
	if err != nil || attempts != 2 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

// A handler that panics, or gives up after a loss, fails. The message belongs in the poison queue, if there is one.
func TestRouter_FailuresAreNacked(t *testing.T) {
	t.Parallel()
	lose := func(m *message.Message) context.Context {
		ctx := m.Context()
		if err := aspect.HoldFrom(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
		return ctx
	}
	for name, handler := range map[string]message.HandlerFunc{
		"loss":          func(m *message.Message) ([]*message.Message, error) { return nil, lose(m).Err() },
		"loss as cause": func(m *message.Message) ([]*message.Message, error) { return nil, context.Cause(lose(m)) },
		"panic":         func(*message.Message) ([]*message.Message, error) { panic("declined") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, guard := open(t, noWait)
			m := encode(t, order{ID: "42"})
			if err := deliver(t, guard, m, handler); !watermilllock.IsPoison(err) {
				t.Errorf("got %v, want an error for the poison queue", err)
			}
			<-m.Nacked()
			again := encode(t, order{ID: "42"}) // finds the lock free
			if err := deliver(t, guard, again, func(*message.Message) ([]*message.Message, error) { return nil, nil }); err != nil {
				t.Error(err)
			}
			<-again.Acked()
		})
	}
}

// Messages that a handler returns are published after the release, so no window begins.
func TestRouter_ProducerBeginsNoDebounce(t *testing.T) {
	t.Parallel()
	_, guard := open(t, "rules:\n  - func: handler/*\n    key: \"order:#{payload.id}\"\n    debounce: 1h\n")
	for range 2 {
		err := deliver(t, guard, encode(t, order{ID: "42"}), func(m *message.Message) ([]*message.Message, error) {
			return []*message.Message{message.NewMessage("receipt", m.Payload)}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A message that waits when the router closes is nacked, and the broker delivers it to another instance.
func TestRouter_Close(t *testing.T) {
	t.Parallel()
	redis, guard := open(t, waits)
	redis.Take("order:42", time.Hour)
	queue, entered := gochannel.NewGoChannel(gochannel.Config{}, nil), make(chan *message.Message, 1)
	router := run(t, func(router *message.Router) {
		router.AddMiddleware(func(h message.HandlerFunc) message.HandlerFunc {
			return func(m *message.Message) ([]*message.Message, error) {
				entered <- m
				return h(m)
			}
		}, guard.Middleware)
		router.AddConsumerHandler("pay", "orders", queue, func(*message.Message) error { t.Error("the handler ran"); return nil })
	})
	if err := queue.Publish("orders", encode(t, order{ID: "42"})); err != nil {
		t.Fatal(err)
	}
	m := <-entered
	if err := router.Close(); err != nil {
		t.Error(err)
	}
	<-m.Nacked()
}

// Outside a router the handler of a message is unknown, so the message is refused.
func TestMiddleware_OutsideRouter(t *testing.T) {
	t.Parallel()
	_, guard := open(t, noWait)
	_, err := guard.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })(encode(t, order{ID: "42"}))
	if err == nil {
		t.Error("the handler ran")
	}
}
