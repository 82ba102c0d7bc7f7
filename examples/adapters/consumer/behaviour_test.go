package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/consumer"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, shop{})
}

// shop is a program that consumes messages of orders.
type shop struct{}

func (shop) Endpoint() ruleset.Endpoint   { return ruleset.Func("topic/orders") }
func (shop) ID() string                   { return "key" }
func (shop) Tenant() string               { return "header.tenant" }
func (shop) Declares() bool               { return true }
func (shop) Code(s failpolicy.Status) int { return s.HTTP }

func (shop) Start(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	locking, err := aspect.New(p.Locks)
	if err != nil {
		return nil, err
	}
	guard, err := consumer.New(locking, p.Set, map[string]consumer.Handler{"queue": replying(p.Queue)})
	if err != nil {
		return nil, err
	}
	s := &server{guard: guard}
	s.handle, s.check = guard.Handle(consumer.Topics{"orders": {Handler: replying(p.Pay), Rules: slices.Concat(p.InCode, p.Declared)}})
	return s, nil
}

// replying is a handler that leaves its text where the caller finds it: a message has no
// answer.
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

// server is the program, with a caller in the place of the queue.
type server struct {
	guard  *consumer.Guard
	handle func(context.Context, *consumer.Message) consumer.Result
	check  error
}

func (s *server) Check() error                      { return s.check }
func (s *server) Aspect() *aspect.Aspect            { return s.guard.Aspect() }
func (*server) Hold(ctx context.Context) *core.Hold { return consumer.Hold(ctx) }
func (s *server) Call(ctx context.Context, c adaptertest.Call) (a adaptertest.Answer) {
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
	r := s.handle(context.WithValue(ctx, replyKey{}, &reply), m)
	a = adaptertest.Answer{OK: r.Err == nil, Text: reply, Lock: r.Lock, All: fmt.Sprint(reply, r.Err)}
	if r.Token != 0 {
		a.Token = strconv.FormatInt(r.Token, 10)
	}
	if refused, ok := errors.AsType[*aspect.RefusedError](r.Err); ok {
		a.Code, a.Cause, a.Retry = refused.Status.HTTP, refused.Cause.Reason(), refused.RetryAfter
	}
	return a
}
