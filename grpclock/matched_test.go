package grpclock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// renamedRegistrar registers services under another name. The handlers of generated code still name the old
// one.
type renamedRegistrar struct {
	*grpc.Server
	name string
}

func (m renamedRegistrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	renamed := *desc
	renamed.ServiceName = m.name
	m.Server.RegisterService(&renamed, impl)
}

// The method that the server matched determines the rules. The handler of generated code may name another
// method.
func TestUnary_MatchedMethodDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rules []ruleset.Rule
		code  codes.Code
		says  string
	}{
		"a rule for the method that was matched": {[]ruleset.Rule{{Endpoint: ruleset.GRPC("/shop.v2.Orders/Pay"), Key: "order:#{method}"}}, codes.Internal, "/shop.v2.Orders/Pay"},
		"a rule for the handler's":               {[]ruleset.Rule{rule("Pay")}, codes.Aborted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			s := &shop{}
			b := prepare(t, s, core.WithObserver(seen.observer()), grpclock.WithRules(tt.rules...))
			shoppb.RegisterOrdersServer(renamedRegistrar{b.server, "shop.v2.Orders"}, s)
			b.checkAndServe()
			b.redis.Take("order:42", time.Hour)
			err := b.conn.Invoke(t.Context(), "/shop.v2.Orders/Pay", order("42"), reply(""))
			if status.Code(err) != tt.code {
				t.Errorf("got %v, want %v", err, tt.code)
			}
			if text := seen.text(); !strings.Contains(text, tt.says) || (text == "") != (tt.says == "") {
				t.Errorf("observers got the warnings %q", text)
			}
		})
	}
}

// A handler may call another method in its process through the interceptor, with the context of its call. The
// inner call is a call of the other method.
func TestUnary_CallInsideCall(t *testing.T) {
	t.Parallel()
	var b *bench
	s := &shop{pay: func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
		got, err := b.guard.UnaryServerInterceptor()(ctx, req, &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Orders/Free"},
			func(context.Context, any) (any, error) { return reply("freed"), nil })
		if err != nil {
			return nil, err
		}
		return got.(*shoppb.PayReply), nil
	}}
	for name, rules := range map[string][]ruleset.Rule{"both": {rule("Pay"), rule("Free", func(r *ruleset.Rule) { r.Key = "free" })}, "the inner one": {rule("Free", func(r *ruleset.Rule) { r.Key = "free" })}} {
		b = prepare(t, s, grpclock.WithRules(rules...))
		b.checkAndServe()
		if got, err := b.client.Pay(t.Context(), order("42")); err != nil || got.GetReceipt() != "freed" {
			t.Errorf("%s: got %v %v", name, got, err)
		}
		b.redis.Take("free", time.Hour)
		if _, err := b.client.Pay(t.Context(), order("42")); status.Code(err) != codes.Aborted {
			t.Errorf("%s, taken: got %v", name, err)
		}
	}
}
