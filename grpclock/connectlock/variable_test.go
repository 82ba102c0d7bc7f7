package connectlock_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

type user struct {
	Tenant string
	ID     int64
}

func TestVariables_OfCall(t *testing.T) {
	t.Parallel()
	forEveryCall(t, func(t *testing.T, protocol, kind string) {
		for template, want := range map[string]string{
			`order:#{req.order_id}`:          "order:1",
			`tenant:#{metadata["X-Tenant"]}`: "tenant:a",
			`trace:#{metadata["trace-bin"]}`: "trace:raw",
			`m:#{method}`:                    "m:" + path(kind),
			`from #{peer}`:                   "from 127.0.0.1",
			`user:#{user.Tenant}:#{user.ID}`: "user:t:7",
		} {
			b := setup(t, &shop{},
				connectlock.WithVariable("user", func(context.Context) (*user, error) { return &user{Tenant: "t", ID: 7}, nil }),
				connectlock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Key = template })))
			b.redis.Take(want, time.Minute)
			got := b.call(t.Context(), protocol, kind, []string{"1"}, "x-tenant", "a", "trace-bin", connect.EncodeBinaryHeader([]byte("raw")))
			if codeOf(got) != connect.CodeAborted {
				t.Errorf("%s: got %v with %q taken, want aborted", template, got.err, want)
			}
			b.stop()
		}
	})
}

func TestVariables_RepeatedOrMissingMetadata(t *testing.T) {
	t.Parallel()
	forEveryCall(t, func(t *testing.T, protocol, kind string) {
		b := setup(t, &shop{}, connectlock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Key = `tenant:#{metadata["x-tenant"]}` })))
		for name, headers := range map[string][]string{"missing": nil, "repeated": {"x-tenant", "a", "x-tenant", "b"}} {
			if got := b.call(t.Context(), protocol, kind, []string{"1"}, headers...); codeOf(got) != connect.CodeInvalidArgument {
				t.Errorf("%s: got %v, want invalid_argument", name, got.err)
			}
		}
	})
}

// The key is built from the message that the handler gets. Connect itself refuses a JSON message that names a field twice.
func TestVariables_OneMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{pay: func(ctx context.Context, req *request) (*receipt, error) {
		core.MustHold(ctx, "order:"+req.GetOrderId())
		return reply("paid"), nil
	}}, connectlock.WithRules(rule("Pay")))
	b.redis.Take("order:42", time.Minute)
	for body, want := range map[string]int{
		`{"orderId": "43"}`: http.StatusOK, `{"order_id": "43"}`: http.StatusOK,
		`{"orderId": "42"}`: http.StatusConflict, `{"order_id": "42"}`: http.StatusConflict,
		`{"orderId": "43", "order_id": "42"}`: http.StatusBadRequest, `{"orderId": "43", "orderId": "42"}`: http.StatusBadRequest,
		`{"ORDERID": "42"}`: http.StatusBadRequest,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+path("Pay")+"?order_id=42", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := b.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %s, want %d", body, response.Status, want)
		}
	}
}
