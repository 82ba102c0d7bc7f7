package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/consumer"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // reloads, warnings and failures are part of the tests
	goleak.VerifyTestMain(m)
}

// rules is a rule file that locks the same order for both topics, which contain the order in different
// places.
const rules = `rules:
  - func: topic/orders.paid
    key: "order:#{key}"
    wait_time: 1h
  - func: topic/orders.cancelled
    key: "order:#{value.order.id}"
    wait_time: 1h
`

func succeed(context.Context, *consumer.Message) error { return nil }

// topics returns the topics with one handler.
func topics(handler consumer.Handler) map[string]consumer.Topic {
	return map[string]consumer.Topic{"orders.paid": {Handler: handler}, "orders.cancelled": {Handler: handler}}
}

// aspectOf returns a Redis, and an aspect whose functions have the rules of a file.
func aspectOf(t *testing.T, file string) (*redistest.Server, *aspect.Aspect, *ruleset.Set) {
	t.Helper()
	redis := redistest.New(t)
	locks, err := core.New(redis.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	set, err := ruleset.Load("locks.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	a, err := aspect.New(locks, aspect.WithSet(set))
	if err != nil {
		t.Fatal(err)
	}
	return redis, a, set
}

func guard(t *testing.T, file string, handler consumer.Handler) (*redistest.Server, *consumer.Guard) {
	t.Helper()
	redis, a, set := aspectOf(t, file)
	g, err := consumer.New(a, set, topics(handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return redis, g
}

// consume publishes messages and consumes both topics, with two partitions each.
func consume(t *testing.T, g *consumer.Guard, messages ...consumer.Message) (dead []error) {
	t.Helper()
	queue := consumer.NewQueue(2, "orders.paid", "orders.cancelled")
	for _, m := range messages {
		if err := queue.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	queue.Close()
	var mu sync.Mutex
	var consumers sync.WaitGroup
	for _, topic := range []string{"orders.paid", "orders.cancelled"} {
		for partition := range 2 {
			consumers.Go(func() {
				queue.Consume(t.Context(), topic, partition, g.Handle, func(_ *consumer.Message, err error) {
					mu.Lock()
					defer mu.Unlock()
					dead = append(dead, err)
				})
			})
		}
	}
	consumers.Wait()
	return dead
}

func paid(id string) consumer.Message { return consumer.Message{Topic: "orders.paid", Key: id} }
func cancelled(id string) consumer.Message {
	return consumer.Message{Topic: "orders.cancelled", Key: "customer", Value: fmt.Appendf(nil, `{"order":{"id":%q}}`, id)}
}

func TestConsume_OneAtATime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	inside, handled := 0, 0
	_, g := guard(t, rules, func(_ context.Context, m *consumer.Message) error {
		mu.Lock()
		inside++
		if inside > 1 {
			t.Errorf("%s: another message of the order is handled at the same time", m.Topic)
		}
		mu.Unlock()
		time.Sleep(time.Millisecond) // enough time for the other topic to overlap
		mu.Lock()
		inside--
		handled++
		mu.Unlock()
		return nil
	})
	var messages []consumer.Message
	for range 10 {
		messages = append(messages, paid("42"), cancelled("42"))
	}
	if dead := consume(t, g, messages...); len(dead) > 0 || handled != len(messages) {
		t.Errorf("%d of %d handled, dead: %v", handled, len(messages), dead)
	}
}

func TestConsume_RefusedMessageIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		redis, g := guard(t, strings.ReplaceAll(rules, "1h", "none"), func(context.Context, *consumer.Message) error { handled++; return nil })
		redis.Take("order:42", time.Minute)
		began := time.Now()
		dead := consume(t, g, paid("42"))
		if took := time.Since(began); handled != 1 || len(dead) > 0 || took < time.Minute {
			t.Errorf("handled %d times, dead %v, after %v, want once, after the other holder's minute", handled, dead, took)
		}
	})
}

// A consumer ends with its context, with or without a message that is being refused.
func TestConsume_EndsWithContext(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string][]consumer.Message{"idle": nil, "refused": {paid("42")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				queue := consumer.NewQueue(1, "orders.paid")
				for _, m := range messages {
					if err := queue.Publish(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				busy := aspect.Outcome{Verdict: aspect.VerdictRefused, RetryAfter: time.Hour}
				ctx, leave := context.WithTimeout(t.Context(), time.Minute)
				defer leave()
				queue.Consume(ctx, "orders.paid", 0, func(context.Context, *consumer.Message) aspect.Outcome { return busy }, func(_ *consumer.Message, err error) {
					t.Errorf("dead: %v", err)
				})
			})
		})
	}
}

func TestConsume_Dead(t *testing.T) {
	t.Parallel()
	declined := errors.New("declined")
	_, g := guard(t, rules, func(context.Context, *consumer.Message) error { return declined })
	noOrder := consumer.Message{Topic: "orders.cancelled", Key: "customer", Value: []byte(`{"order": {}}`)}
	noJSON := consumer.Message{Topic: "orders.cancelled", Key: "customer", Value: []byte(`<order/>`)}
	dead := consume(t, g, paid("42"), noOrder, noJSON)
	if all := errors.Join(dead...); len(dead) != 3 || !errors.Is(all, declined) || strings.Count(all.Error(), "key") != 2 {
		t.Errorf("dead: %v", dead)
	}
}

// The handler has run, so the queue does not handle the message again, although the error is a refusal with a hint.
func TestConsume_InnerRefusal(t *testing.T) {
	t.Parallel()
	handled := 0
	_, g := guard(t, rules, func(context.Context, *consumer.Message) error {
		handled++
		return &aspect.RefusedError{RetryAfter: time.Millisecond}
	})
	if dead := consume(t, g, paid("42")); len(dead) != 1 || handled != 1 {
		t.Errorf("handled %d times, dead: %v", handled, dead)
	}
}

func TestNew_TopicWithoutAHandler(t *testing.T) {
	t.Parallel()
	_, a, set := aspectOf(t, strings.ReplaceAll(rules, "cancelled", "canceled"))
	g, err := consumer.New(a, set, topics(succeed), nil)
	if err == nil || !strings.Contains(err.Error(), `did you mean "topic/orders.cancelled"?`) {
		t.Errorf("got %v", err)
	}
	if o := g.Handle(t.Context(), &consumer.Message{Topic: "orders"}); o.Result() == nil {
		t.Error("a message of a topic without a handler was handled")
	}
}

func TestNew_SharesFileWithWrappedFunction(t *testing.T) {
	t.Parallel()
	_, a, set := aspectOf(t, rules+"  - {func: close-day, key: \"close-day:#{in}\"}\n")
	closeDay := func(context.Context, string) (struct{}, error) { return struct{}{}, nil }
	if _, err := aspect.Wrap(a, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, closeDay); err != nil {
		t.Fatal(err)
	}
	_, err := consumer.New(a, set, topics(succeed), nil)
	if err := errors.Join(err, a.Check()); err != nil {
		t.Errorf("got %v", err)
	}
}
