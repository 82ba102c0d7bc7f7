package kratoslock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/kratoslock"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

var servers = map[string]server{"http": serveHTTP, "grpc": serveGRPC}

// newGuard returns a guard with one rule. The rule locks an item and does not wait.
func newGuard(t *testing.T, change ...func(*ruleset.Rule)) (*redistest.Server, *grpclock.Guard) {
	t.Helper()
	redis := redistest.New(t)
	locks, err := core.New(redis.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	rule := ruleset.Rule{Endpoint: ruleset.GRPC(operation), Key: "item:#{req.item}", WaitTime: ruleset.NoWait}
	for _, do := range change {
		do(&rule)
	}
	guard, err := grpclock.New(locks, grpclock.WithRules(rule))
	if err != nil {
		t.Fatal(err)
	}
	return redis, guard
}

func paid(context.Context, string) (string, error) { return "paid", nil }

func wantCode(t *testing.T, got adaptertest.Answer, want int) {
	t.Helper()
	if got.Code != want {
		t.Errorf("got %+v, want code %d", got, want)
	}
}

// An item that is locked over one transport is taken over the other.
func TestMiddleware_OneLock(t *testing.T) {
	t.Parallel()
	_, guard := newGuard(t)
	calls, inside := map[string]callFunc{}, false
	s := &shop{pay: func(ctx context.Context, _ string) (string, error) {
		if inside {
			t.Error("two handlers have the lock")
		}
		inside = true
		wantCode(t, calls["http"](ctx, adaptertest.Call{ID: "42"}), http.StatusConflict)
		wantCode(t, calls["grpc"](ctx, adaptertest.Call{ID: "42"}), int(failpolicy.Busy.Status().GRPC))
		inside = false
		return "paid", nil
	}}
	for name, serve := range servers {
		_, calls[name] = serve(t, kratoslock.Middleware(guard), s)
	}
	for name, call := range calls {
		if got := call(t.Context(), adaptertest.Call{ID: "42"}); got.Text != "paid" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A middleware that is installed twice takes one permit of a semaphore.
func TestMiddleware_Twice(t *testing.T) {
	t.Parallel()
	for name, serve := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, guard := newGuard(t, func(r *ruleset.Rule) { r.Kind, r.Permits = ruleset.Semaphore, 1 })
			_, call := serve(t, middleware.Chain(kratoslock.Middleware(guard), kratoslock.Middleware(guard)), &shop{pay: paid})
			if got := call(t.Context(), adaptertest.Call{ID: "42"}); got.Text != "paid" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Without a server transport, the operation is not known. The middleware then refuses the call.
func TestMiddleware_NoTransport(t *testing.T) {
	t.Parallel()
	_, guard := newGuard(t)
	handler := kratoslock.Middleware(guard)(func(context.Context, any) (any, error) {
		t.Error("the handler runs")
		return nil, nil
	})
	_, err := handler(t.Context(), &shoppb.ReserveRequest{})
	if got := kerrors.FromError(err); got.Code != http.StatusInternalServerError || got.Reason != failpolicy.ReasonMisconfigured {
		t.Errorf("got %v", err)
	}
}

// A refusal over HTTP has the HTTP status of the rule. The table of kratos for statuses of gRPC contains other statuses.
func TestMiddleware_HTTPStatus(t *testing.T) {
	t.Parallel()
	redis, guard := newGuard(t, func(r *ruleset.Rule) { r.Status.Busy = failpolicy.Status{HTTP: http.StatusLocked, GRPC: 9} })
	_, call := serveHTTP(t, kratoslock.Middleware(guard), &shop{pay: paid})
	redis.Take("item:42", time.Hour)
	wantCode(t, call(t.Context(), adaptertest.Call{ID: "42"}), http.StatusLocked)
}

// Over HTTP, a key reads headers as metadata, and the address of the client as the peer.
func TestMiddleware_Variables(t *testing.T) {
	t.Parallel()
	_, guard := newGuard(t, func(r *ruleset.Rule) { r.Key = `item:#{metadata["x-tenant"]}:#{peer}` })
	_, call := serveHTTP(t, kratoslock.Middleware(guard), &shop{pay: func(ctx context.Context, _ string) (string, error) {
		return grpclock.Hold(ctx).Key(), nil
	}})
	if got := call(t.Context(), adaptertest.Call{ID: "42", Tenant: "acme"}); got.Text != "item:acme:127.0.0.1" {
		t.Errorf("got %+v", got)
	}
}

// A wait ends before the timeout of a server, which is one second. The answer is the one for a taken lock.
func TestMiddleware_Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis, guard := newGuard(t, func(r *ruleset.Rule) { r.WaitTime = time.Hour })
		server := khttp.NewServer(khttp.Middleware(kratoslock.Middleware(guard)))
		register(server, &shop{pay: paid})
		redis.Take("item:42", 2*time.Hour)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/items/42/reserve", http.NoBody))
		if w.Code != http.StatusConflict {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

// Check finds the methods of a service that only HTTP serves.
func TestFiles_Check(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		operation:       "",
		operation + "s": "did you mean",
	} {
		_, guard := newGuard(t, func(r *ruleset.Rule) { r.Endpoint = ruleset.GRPC(path) })
		kratoslock.Middleware(guard)
		err := guard.Check(kratoslock.Files{shoppb.File_shop_proto})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
