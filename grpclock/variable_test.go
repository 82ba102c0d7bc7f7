package grpclock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

type userKey struct{}

type user struct {
	Tenant string
	ID     int64
}

func TestVariables_OfCall(t *testing.T) {
	t.Parallel()
	for template, key := range map[string]string{
		`order:#{req.order_id}`:          "order:1",
		`tenant:#{metadata["x-tenant"]}`: "tenant:a",
		`tenant:#{metadata["X-Tenant"]}`: "tenant:a",
		`m:#{method}`:                    "m:/shop.v1.Orders/",
		`from #{peer}`:                   "from bufconn",
		`user:#{user.Tenant}:#{user.ID}`: "user:t:7",
	} {
		for _, kind := range kinds {
			want := key
			if strings.HasPrefix(template, "m:") {
				want += kind
			}
			b := setup(t, &shop{}, userVariable(t, true), grpclock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Key = template })))
			b.redis.Take(want, time.Minute)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a")
			if got := b.call(ctx, kind, "1"); status.Code(got.err) != codes.Aborted {
				t.Errorf("%s of %s: got %v with %q taken, want ABORTED", template, kind, got.err, want)
			}
		}
	}
}

func userVariable(t *testing.T, wanted bool) grpclock.Option {
	t.Helper()
	return grpclock.WithVariable("user", func(context.Context) (*user, error) {
		if !wanted {
			t.Error("the variable was computed although no rule uses it")
		}
		return &user{Tenant: "t", ID: 7}, nil
	})
}

func TestWithVariable_ComputedIfUsed(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, userVariable(t, false), grpclock.WithRules(rule("Pay")))
	b.call(t.Context(), "Pay", "1").check(t, "paid 1")
}

func TestWithVariable_Unset(t *testing.T) {
	t.Parallel()
	for name, principal := range map[string]func(context.Context) (string, error){
		"empty": func(ctx context.Context) (string, error) { s, _ := ctx.Value(userKey{}).(string); return s, nil },
		"error": func(context.Context) (string, error) { return "", errors.New("no session store") },
	} {
		for _, kind := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				var seen atomic.Value
				b := prepare(t, &shop{}, grpclock.WithVariable("principal", principal),
					grpclock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Key = "user:#{principal}" })))
				b.server = b.newServer(
					[]grpc.UnaryServerInterceptor{func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
						got, err := handler(ctx, req)
						seen.Store(err)
						return got, err
					}},
					[]grpc.StreamServerInterceptor{func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
						err := handler(srv, stream)
						seen.Store(err)
						return err
					}})
				shoppb.RegisterOrdersServer(b.server, b.shop)
				b.serve()
				got := b.call(t.Context(), kind, "1")
				if status.Code(got.err) != codes.Internal || b.shop.ran.Load() != 0 {
					t.Errorf("got %v, ran %d; want INTERNAL and no run", got.err, b.shop.ran.Load())
				}
				wantMisconfigured(t, got)
				if strings.Contains(got.err.Error(), "principal") {
					t.Errorf("the client got %q", got.err)
				}
				if err, _ := seen.Load().(error); err == nil || !strings.Contains(chain(err), "principal") {
					t.Errorf("the server gets %q, which does not contain the name of the variable", chain(err))
				}
			})
		}
	}
}

func TestWithVariable_NilListOrMap(t *testing.T) {
	t.Parallel()
	for template, variable := range map[string]grpclock.Option{
		"user:#{roles}":         grpclock.WithVariable("roles", func(context.Context) ([]string, error) { return nil, nil }),
		`user:#{claims["sub"]}`: grpclock.WithVariable("claims", func(context.Context) (map[string]string, error) { return nil, nil }),
		"user:#{anything}":      grpclock.WithVariable("anything", func(context.Context) (any, error) { return []string(nil), nil }),
		"user:#{principal.ID}":  grpclock.WithVariable("principal", func(context.Context) (*user, error) { return nil, nil }),
	} {
		b := setup(t, &shop{}, variable, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Key = template })))
		if got := b.call(t.Context(), "Pay", "1"); status.Code(got.err) != codes.Internal || b.shop.ran.Load() != 0 {
			t.Errorf("%s: got %v, ran %d; want INTERNAL and no run", template, got.err, b.shop.ran.Load())
		}
	}
}

// chain returns the messages of an error and of the errors that it wraps.
func chain(err error) string {
	var texts []string
	for ; err != nil; err = errors.Unwrap(err) {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, " < ")
}

func TestVariables_RepeatedOrMissingMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Key = `tenant:#{metadata["x-tenant"]}` })))
	for name, ctx := range map[string]context.Context{
		"missing":  t.Context(),
		"repeated": metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a", "x-tenant", "b"),
	} {
		if got := b.call(ctx, "Pay", "1"); status.Code(got.err) != codes.InvalidArgument {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT", name, got.err)
		}
	}
}

func TestVariables_ListLocksEachElement(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Key = "stock:#{req.skus}" })))
	b.redis.Take("stock:pear", time.Minute)
	for sku, want := range map[string]codes.Code{"apple": codes.OK, "pear": codes.Aborted} {
		_, err := b.client.Pay(t.Context(), shoppb.PayRequest_builder{Skus: []string{"fig", sku}}.Build())
		if status.Code(err) != want {
			t.Errorf("%s: got %v, want %v", sku, err, want)
		}
	}
}
