package connectlock_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect"

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
