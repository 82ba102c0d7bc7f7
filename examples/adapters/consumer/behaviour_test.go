package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/consumer"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: ruleset.Func("topic/orders"), ID: "key", Tenant: "header.tenant", Declares: true,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Start: serveProgram,
	})
}

// serveProgram runs a program that consumes messages about orders.
func serveProgram(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	locking, err := aspect.New(p.Locks)
	if err != nil {
		return adaptertest.Server{}, err
	}
	guard, err := consumer.New(locking, p.Set, map[string]consumer.Handler{"queue": replying(p.Queue)})
	if err != nil {
		return adaptertest.Server{}, err
	}
	handle, problem := guard.Handle(consumer.Topics{"orders": {Handler: replying(p.Pay), Rules: slices.Concat(p.InCode, p.Declared)}})
	return adaptertest.Server{
		Check: func() error { return problem }, Aspect: guard.Aspect(), Hold: consumer.Hold,
		Call: func(ctx context.Context, c adaptertest.Call) adaptertest.Answer { return calling(ctx, handle, c) },
	}, nil
}

// replying returns a handler that stores its text for the caller, because a message has no answer.
func replying(do func(context.Context, string) (string, error)) consumer.Handler {
	return func(ctx context.Context, m *consumer.Message) error {
		text, err := do(ctx, m.Key)
		if reply, ok := ctx.Value(replyKey{}).(*string); ok && err == nil {
			*reply = text
		}
		return err
	}
}

type replyKey struct{}

// calling calls the handler of a message directly, without the queue.
func calling(ctx context.Context, handle func(context.Context, *consumer.Message) consumer.Result, c adaptertest.Call) (a adaptertest.Answer) {
	defer func() {
		if v := recover(); v != nil {
			a = adaptertest.Answer{Code: http.StatusInternalServerError, All: fmt.Sprint(v)}
		}
	}()
	m := &consumer.Message{Topic: "orders", Key: c.ID}
	if c.Tenant != "" {
		m.Headers = map[string][]string{"tenant": {c.Tenant}}
	}
	var reply string
	r := handle(context.WithValue(ctx, replyKey{}, &reply), m)
	a = adaptertest.Answer{OK: r.Err == nil, Text: reply, Lock: r.Lock, All: fmt.Sprint(reply, r.Err)}
	if r.Token != 0 {
		a.Token = strconv.FormatInt(r.Token, 10)
	}
	if refused, ok := errors.AsType[*aspect.RefusedError](r.Err); ok {
		a.Code, a.Cause, a.Retry = refused.Status.HTTP, refused.Cause.Reason(), refused.RetryAfter
	}
	return a
}
