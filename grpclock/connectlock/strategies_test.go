package connectlock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

// cause is one way in which a call does not get its lock.
type cause struct {
	name   string
	set    func(r *ruleset.Rule, s failpolicy.Strategy)
	before func(t *testing.T, b *bench, protocol, kind string)
	id     string
	code   connect.Code
	reason string
	hint   bool
	ran    int32 // before
}

func causes() []cause {
	busy := func(r *ruleset.Rule, s failpolicy.Strategy) { r.OnBusy = s }
	return []cause{
		{
			"busy", busy, func(_ *testing.T, b *bench, _, _ string) { b.redis.Take("order:1", time.Minute) },
			"1", connect.CodeAborted, failpolicy.Busy.Reason(), true, 0,
		},
		{
			"debounced", func(r *ruleset.Rule, s failpolicy.Strategy) { r.WaitTime, r.Debounce, r.OnBusy = 0, time.Minute, s },
			func(t *testing.T, b *bench, protocol, kind string) {
				t.Helper()
				b.call(t.Context(), protocol, kind, []string{"1", "2"}).check(t, answered[kind]...)
			},
			"1", connect.CodeResourceExhausted, failpolicy.Debounced.Reason(), true, 1,
		},
		{
			"backend", func(r *ruleset.Rule, s failpolicy.Strategy) { r.OnBackend = s },
			func(_ *testing.T, b *bench, _, _ string) { b.redis.Down() },
			"1", connect.CodeUnavailable, failpolicy.Backend.Reason(), true, 0,
		},
		{
			"key", func(r *ruleset.Rule, s failpolicy.Strategy) { r.OnKey = s },
			func(*testing.T, *bench, string, string) {},
			"", connect.CodeInvalidArgument, failpolicy.Key.Reason(), false, 0,
		},
		{
			"overload", func(r *ruleset.Rule, s failpolicy.Strategy) {
				r.WaitTime, r.MaxWaiters, r.OnOverload = ruleset.WaitForever, 1, s
			},
			func(t *testing.T, b *bench, _, _ string) {
				t.Helper()
				b.redis.Take("order:1", time.Minute)
				go func() { _, _, _ = b.locks.Lock("order:1").Acquire(t.Context()) }()
				until(t, func() bool { return b.locks.Stats().Waiters == 1 })
			},
			"1", connect.CodeResourceExhausted, failpolicy.Overload.Reason(), true, 0,
		},
	}
}

// outcome is what callers see of a strategy.
type outcome struct {
	strategy failpolicy.Strategy
	response string
	header   string
	replies  map[string][]string // none: the answers of the handlers
	runs     bool
}

func outcomes() []outcome {
	one := func(text string) map[string][]string { return map[string][]string{"Pay": {text}, "Import": {text}} }
	queued := map[string][]string{"Pay": {"queued"}, "Track": {"queued"}, "Import": {"queued"}, "Chat": {"queued"}}
	return []outcome{
		{strategy: failpolicy.Error},
		{strategy: failpolicy.Skip, header: "skipped", replies: one("")},
		{strategy: failpolicy.NullResponse, header: "null", replies: one("")},
		{strategy: failpolicy.NullResponse, response: `{"receipt": "none"}`, header: "null", replies: one("none")},
		{strategy: failpolicy.Fallback, replies: queued},
		{strategy: failpolicy.Proceed, header: "unlocked", runs: true},
	}
}

// queueing registers the fallback "queue" for every kind of call.
func queueing() []any {
	return []any{
		connectlock.WithFallback("queue", func(context.Context, *request) (*receipt, error) { return reply("queued"), nil }),
		connectlock.WithStreamFallback("queue", func(_ context.Context, conn connect.StreamingHandlerConn) error {
			return conn.Send(reply("queued"))
		}),
	}
}

// How callers see a strategy does not depend on the cause: [TestBehaviour] has the others.
func TestStrategies_OnEveryShapeInEveryProtocol(t *testing.T) {
	t.Parallel()
	for _, c := range causes() {
		for _, o := range outcomes() {
			if c.name != "busy" && o.strategy != failpolicy.Error {
				continue
			}
			t.Run(c.name+"/"+string(o.strategy)+o.response, func(t *testing.T) {
				t.Parallel()
				everywhere(t, func(t *testing.T, protocol, kind string) {
					if o.response != "" && o.replies[kind] == nil {
						return // a mistake that Check reports
					}
					c.provoke(t, o, protocol, kind)
				})
			})
		}
	}
}

// provoke has a call end as an outcome says.
func (c cause) provoke(t *testing.T, o outcome, protocol, kind string) {
	t.Helper()
	timeout := patient
	if c.name == "backend" { // which has to be waited for
		timeout = 300 * time.Millisecond
	}
	b := prepare(t, timeout, &shop{}, append(queueing(), connectlock.WithRules(rule(kind, func(r *ruleset.Rule) {
		c.set(r, o.strategy)
		r.Response = o.response
		if o.strategy == failpolicy.Fallback {
			r.Fallback = "queue"
		}
	})))...)
	b.check()
	b.serve(b.guard.Interceptor())
	c.before(t, b, protocol, kind)
	got := b.call(t.Context(), protocol, kind, []string{c.id, "2"})

	if got.lockStatus() != o.header {
		t.Errorf("got header %q, want %q", got.lockStatus(), o.header)
	}
	if ran := b.shop.ran.Load() - c.ran; (ran == 1) != o.runs || ran > 1 {
		t.Errorf("ran %d times", ran)
	}
	switch {
	case o.strategy == failpolicy.Error:
		c.wantRefused(t, got)
	case o.runs && c.id == "":
		got.check(t, map[string][]string{"Pay": {"paid "}, "Track": {"packed ", "sent "}, "Import": {"imported ,2"}, "Chat": {"re ", "re 2"}}[kind]...)
	case o.runs:
		got.check(t, answered[kind]...)
	default:
		got.check(t, o.replies[kind]...)
	}
}

// wantRefused wants the status, its details and the hint.
func (c cause) wantRefused(t *testing.T, got answer) {
	t.Helper()
	reasons, hints := got.reasons()
	if codeOf(got) != c.code || !slices.Equal(reasons, []string{"interlock/" + c.reason}) || len(got.replies) > 0 {
		t.Errorf("got %v %q and %q, want %v and exactly %q", got.err, reasons, got.replies, c.code, c.reason)
	}
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	if (hints == 1) != c.hint || (err == nil && seconds > 0) != c.hint {
		t.Errorf("RetryInfo %d times, Retry-After %q; want a hint: %v", hints, got.header.Get("Retry-After"), c.hint)
	}
}

func TestAcquired_RunsTheHandlerOnceUnderTheLock(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		b := setup(t, &shop{}, connectlock.WithRules(rule(kind)))
		got := b.call(t.Context(), protocol, kind, []string{"1", "2"})
		got.check(t, answered[kind]...)
		if got.lockStatus() != "" || b.shop.ran.Load() != 1 || b.held("order:1") {
			t.Errorf("header %q, ran %d, held %v; want none, once, false", got.lockStatus(), b.shop.ran.Load(), b.held("order:1"))
		}
	})
}

func TestFallback_LearnsTheCauseAndHoldsNoLock(t *testing.T) {
	t.Parallel()
	note := func(ctx context.Context) {
		if out, _ := aspect.OutcomeFrom(ctx); out.Cause != failpolicy.Busy || connectlock.Hold(ctx) != nil {
			t.Errorf("got cause %q and the lock %v", out.Cause, connectlock.Hold(ctx))
		}
	}
	everywhere(t, func(t *testing.T, protocol, kind string) {
		b := setup(t, &shop{},
			connectlock.WithFallback("later", func(ctx context.Context, req *request) (*receipt, error) {
				note(ctx)
				if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
					info.ResponseHeader().Set("X-Later", "yes")
				}
				return reply("later " + req.GetOrderId()), nil
			}),
			connectlock.WithStreamFallback("later", func(ctx context.Context, conn connect.StreamingHandlerConn) error {
				note(ctx)
				req := new(request)
				if err := conn.Receive(req); err != nil {
					return err
				}
				conn.ResponseHeader().Set("X-Later", "yes")
				return conn.Send(reply("later " + req.GetOrderId()))
			}),
			connectlock.WithRules(rule(kind, func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "later" })))
		b.redis.Take("order:7", time.Minute)
		got := b.call(t.Context(), protocol, kind, []string{"7"})
		got.check(t, "later 7")
		if got.header.Get("X-Later") != "yes" {
			t.Errorf("the header of the fallback is lost: %v", got.header)
		}
	})
}

func TestUnlockedByTheRule_IsNotMarked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ruleset.Rule){
		"disabled": func(r *ruleset.Rule) { r.Disabled = true },
		"dry run":  func(r *ruleset.Rule) { r.DryRun = true },
		"when":     func(r *ruleset.Rule) { r.When = "req.amount > 100" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, protocol, kind string) {
				b := setup(t, &shop{}, connectlock.WithRules(rule(kind, change)))
				b.redis.Take("order:1", time.Minute)
				got := b.call(t.Context(), protocol, kind, []string{"1", "2"})
				got.check(t, answered[kind]...)
				if got.lockStatus() != "" {
					t.Errorf("got header %q, want none", got.lockStatus())
				}
			})
		})
	}
}

func TestSuspend_RunsEverythingUnlocked(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		b := setup(t, &shop{}, connectlock.WithRules(rule(kind)))
		b.redis.Take("order:1", time.Minute)
		b.guard.Aspect().Suspend()
		b.call(t.Context(), protocol, kind, []string{"1", "2"}).check(t, answered[kind]...)
		b.guard.Aspect().Resume()
		if got := b.call(t.Context(), protocol, kind, []string{"1", "2"}); codeOf(got) != connect.CodeAborted {
			t.Errorf("after Resume got %v, want aborted", got.err)
		}
	})
}

// replies is an interceptor that changes replies which it finds to be messages.
type replies struct{ passing }

func (replies) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err != nil {
			return nil, err
		}
		m, ok := res.Any().(proto.Message)
		if !ok {
			return nil, errors.New("no message")
		}
		field := m.ProtoReflect().Descriptor().Fields().ByName("receipt")
		m.ProtoReflect().Set(field, protoreflect.ValueOfString(m.ProtoReflect().Get(field).String()+"!"))
		return res, nil
	}
}

func TestNullReply_IsAFreshMessageForEveryCall(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.OnBusy, r.Response = failpolicy.NullResponse, `{"receipt":"none"}`
	})))
	b.serve(replies{}, b.guard.Interceptor())
	b.redis.Take("order:1", time.Minute)
	for protocol := range protocols {
		b.call(t.Context(), protocol, "Pay", []string{"1"}).check(t, "none!")
		b.call(t.Context(), protocol, "Pay", []string{"2"}).check(t, "paid 2!")
	}
	json := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Pay"), connect.WithProtoJSON())
	single(json.CallUnary(t.Context(), connect.NewRequest(order("1")))).check(t, "none!")
}
