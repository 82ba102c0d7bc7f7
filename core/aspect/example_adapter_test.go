package aspect_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// delivery is a message with its handler. It implements Call.
type delivery struct {
	key     string
	handler func(context.Context) error
}

// Env returns the variables in the order of the schema.
func (d delivery) Env(context.Context) keyexpr.Env { return keyexpr.Values{d.key} }

// Handle runs the handler with a context that carries the lock and is canceled when the lock is lost.
func (d delivery) Handle(ctx context.Context, _ aspect.Grant) error { return d.handler(ctx) }

// Fallback is called only for fallbacks of the site.
func (d delivery) Fallback(_ context.Context, name string) error {
	return fmt.Errorf("no fallback %s", name)
}

// An adapter for messages. It names its endpoints, declares the variables of keys, presents each message as a call, and
// translates the outcome.
func ExampleNewRegistry() {
	locking, srv, done := exampleAspect()
	defer done()
	rules, err := ruleset.Load("locks.yaml", []byte(`
rules:
  - func: topic/orders.paid
    key: "order:#{key}"
    wait_time: none
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: "key", Type: keyexpr.TypeFor[string]()})
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint := func(topic string) ruleset.Endpoint { return ruleset.Func("topic/" + topic) }
	registry := aspect.NewRegistry(locking, aspect.Adapter[string, struct{}]{
		Transport: ruleset.TransportFunc,
		Prefix:    "topic/",
		Noun:      "topic",
		Endpoint:  endpoint,
		Compile: func(_ *ruleset.Set, topic string, rules []*ruleset.Resolved) (*aspect.Point, struct{}, error) {
			if len(rules) == 0 {
				return nil, struct{}{}, nil // nothing to lock
			}
			point, err := locking.Prepare(aspect.Site{Endpoint: endpoint(topic), Schema: schema}, rules...)
			return point, struct{}{}, err
		},
	})
	table, err := registry.Table(rules) // it follows the reloads of a *ruleset.Live
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := locking.Conclude(registry.Check("orders.paid", "orders.seen")); err != nil { // all topics, once
		fmt.Println(err)
		return
	}

	deliver := func(topic, key string) error {
		d := delivery{key, func(ctx context.Context) error {
			_, locked := core.Held(ctx, "order:"+key)
			fmt.Println(topic, key, "locked:", locked)
			return nil
		}}
		entry := table.At(topic)
		switch {
		case entry == nil:
			return d.handler(context.Background()) // no rules
		case entry.Err != nil:
			return entry.Err // rules that cannot work: never run the handler
		}
		outcome := entry.Point.Run(context.Background(), d)
		return outcome.Result()
	}
	fmt.Println(deliver("orders.seen", "42"), deliver("orders.paid", "42"))
	srv.Take("order:42", time.Minute) // another consumer processes order 42
	err = deliver("orders.paid", "42")
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		fmt.Println("deliver it again later:", refused.Cause, refused.RetryAfter > 0)
	}
	// Output:
	// orders.seen 42 locked: false
	// orders.paid 42 locked: true
	// <nil> <nil>
	// deliver it again later: busy true
}
