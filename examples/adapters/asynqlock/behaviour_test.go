package asynqlock_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/asynqlock"
	"github.com/interlock-go/interlock/failpolicy"
)

// order is the payload of the tasks.
type order struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.Func("task/pay")
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: endpoint, ID: "payload.id", Tenant: "payload.tenant",
		Code: func(s failpolicy.Status) int { return s.HTTP },
		Start: func(_ testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
			return adaptertest.ServeMessages(p, endpoint, serve)
		},
	})
}

// serve passes tasks through the middleware without a server, because a server would deliver a refused task again.
func serve(p adaptertest.MessageProgram) (func() error, func(context.Context, adaptertest.Call) error, error) {
	handler := func(do func(context.Context, string) error) asynq.HandlerFunc {
		return func(ctx context.Context, t *asynq.Task) error {
			var o order
			if err := json.Unmarshal(t.Payload(), &o); err != nil {
				return err
			}
			return do(ctx, o.ID)
		}
	}
	guard, problem := asynqlock.New(p.Aspect, p.Rules, map[string]any{"pay": order{}}, map[string]asynq.HandlerFunc{"queue": handler(p.Queue)})
	if guard == nil {
		return nil, nil, problem
	}
	mux := asynq.NewServeMux()
	mux.Use(guard.Middleware)
	mux.Handle("pay", handler(p.Pay))
	deliver := func(ctx context.Context, c adaptertest.Call) error {
		payload, err := json.Marshal(order{c.ID, c.Tenant})
		if err != nil {
			return err
		}
		return mux.ProcessTask(ctx, asynq.NewTask("pay", payload))
	}
	return func() error { return problem }, deliver, nil
}
