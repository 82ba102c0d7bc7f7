package connectlock_test

import (
	"context"
	"errors"
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

func TestStrategies_Fallback(t *testing.T) {
	t.Parallel()
	note := func(ctx context.Context) {
		if out, _ := aspect.OutcomeFrom(ctx); out.Cause != failpolicy.Busy || connectlock.Hold(ctx) != nil {
			t.Errorf("got cause %q and the lock %v", out.Cause, connectlock.Hold(ctx))
		}
	}
	forEveryCall(t, func(t *testing.T, protocol, kind string) {
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

// replies is an interceptor that changes replies that are messages.
type replies struct{ passThrough }

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

func TestStrategies_NullReplyIsNewMessage(t *testing.T) {
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
	singleAnswer(json.CallUnary(t.Context(), connect.NewRequest(order("1")))).check(t, "none!")
}
