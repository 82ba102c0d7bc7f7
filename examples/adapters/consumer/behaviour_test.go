package consumer_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/consumer"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.Func("topic/orders")
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: endpoint, ID: "key", Tenant: "header.tenant",
		Code: func(s failpolicy.Status) int { return s.HTTP },
		Start: func(_ testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
			return adaptertest.ServeMessages(p, endpoint, serve)
		},
	})
}

// serve handles messages without the queue, which would handle a refused message again.
func serve(p adaptertest.MessageProgram) (func() error, func(context.Context, adaptertest.Call) error, error) {
	handler := func(do func(context.Context, string) error) consumer.Handler {
		return func(ctx context.Context, m *consumer.Message) error { return do(ctx, m.Key) }
	}
	guard, problem := consumer.New(p.Aspect, p.Rules, map[string]consumer.Topic{"orders": {Handler: handler(p.Pay)}}, map[string]consumer.Handler{"queue": handler(p.Queue)})
	if guard == nil {
		return nil, nil, problem
	}
	deliver := func(ctx context.Context, c adaptertest.Call) error {
		m := &consumer.Message{Topic: "orders", Key: c.ID}
		if c.Tenant != "" {
			m.Headers = map[string]string{"tenant": c.Tenant}
		}
		o := guard.Handle(ctx, m)
		return o.Result()
	}
	return func() error { return problem }, deliver, nil
}
