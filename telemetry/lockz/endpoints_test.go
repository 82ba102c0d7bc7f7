package lockz_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// A Gin endpoint locks an order and then the stock, and a gRPC method locks the stock and then the order. The
// page shows the locks that both hold and wait for, and the deadlock. An operator releases one of the locks,
// and both calls end.
func TestEndpoints_Deadlock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		second := func(ctx context.Context, name string) error {
			time.Sleep(time.Second) // virtual time, until both have their first lock
			return b.locks.Lock(name).Do(ctx, func(context.Context) error { return nil }, core.WaitTime(time.Hour), core.Label("then "+name))
		}
		shop := b.ginShop(func(c *gin.Context) {
			if err := second(c.Request.Context(), "stock"); err != nil {
				c.Status(http.StatusConflict)
				return
			}
			c.Status(http.StatusOK)
		})
		stock := b.grpcStock(func(ctx context.Context) error { return second(ctx, "order") })

		var both sync.WaitGroup
		var paid int
		var moved error
		both.Go(func() {
			w := httptest.NewRecorder()
			shop.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/pay", nil).WithContext(b.t.Context()))
			paid = w.Code
		})
		both.Go(func() { _, moved = stock.Check(b.t.Context(), &health.HealthCheckRequest{Service: "stock"}) })
		time.Sleep(time.Minute) // virtual time
		synctest.Wait()

		s := b.Snapshot()
		if len(s.Deadlocks) != 1 || s.HoldsTotal != 2 || s.WaitersTotal != 2 {
			t.Fatalf("%d deadlocks, %d holds, %d waiters, want 1, 2 and 2", len(s.Deadlocks), s.HoldsTotal, s.WaitersTotal)
		}
		rules := map[string]bool{}
		for _, c := range s.Deadlocks[0].Callers {
			rules[c.Holds[0].Rule+", "+c.WaitsFor.Rule] = true
		}
		if !rules["POST /orders/pay, then stock"] || !rules["/grpc.health.v1.Health/Check, then order"] {
			t.Errorf("the callers of the deadlock are %v", rules)
		}

		for i, ticket := range b.tickets("/", "X-Operator", "yes") {
			if s.Holds[i].KeyHash != core.KeyHash("shop:order") {
				continue
			}
			if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusSeeOther {
				t.Errorf("release by force: %d %s", w.Code, w.Body)
			}
		}
		both.Wait()
		if moved != nil {
			t.Errorf("the gRPC method, which got the released lock: %v", status.Convert(moved))
		}
		if paid < http.StatusBadRequest {
			t.Errorf("the Gin endpoint, which lost its lock, answered %d", paid)
		}
		if s := b.Snapshot(); s.HoldsTotal != 0 || s.WaitersTotal != 0 || len(s.Deadlocks) != 0 {
			t.Errorf("in the end: %d holds, %d waiters, %d deadlocks", s.HoldsTotal, s.WaitersTotal, len(s.Deadlocks))
		}
	}, lockz.WithAuthorizer(operator))
}

// The page shows a request without a usable key as a refusal, and a request that runs without its lock as an
// incident.
func TestEndpoints_CallsWithoutALock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		engine := gin.New()
		guard, err := ginlock.New(b.locks)
		if err != nil {
			t.Fatal(err)
		}
		keyless := ruleset.Rule{Key: "order:#{query.id}"}
		switchedOff := ruleset.Rule{Key: "order:1", When: `query.lock == "yes"`}
		for path, rule := range map[string]ruleset.Rule{"/keyless": keyless, "/off": switchedOff} {
			if err := guard.Handle(engine, http.MethodPost, path, rule, func(c *gin.Context) { c.Status(http.StatusOK) }); err != nil {
				t.Fatal(err)
			}
		}
		ask(engine, http.MethodPost, "/keyless")
		ask(engine, http.MethodPost, "/off?lock=no")
		s := b.Snapshot()
		if s.RefusalsTotal != 1 || s.Refusals[0].What != "key" || s.Refusals[0].Rule != "POST /keyless" || s.Refusals[0].KeyHash != "" {
			t.Errorf("refusals: %+v, want one without a key", s.Refusals)
		}
		if s.IncidentsTotal != 1 || s.Incidents[0].What != "ran unlocked: when" || s.Incidents[0].Rule != "POST /off" {
			t.Errorf("incidents: %+v, want the unlocked run", s.Incidents)
		}
	})
}

// ginShop returns a service with an endpoint that locks the order.
func (b *fixture) ginShop(handler gin.HandlerFunc) http.Handler {
	b.t.Helper()
	engine := gin.New()
	guard, err := ginlock.New(b.locks)
	if err != nil {
		b.t.Fatal(err)
	}
	rule := ruleset.Rule{Key: "order", WaitTime: time.Hour}
	if err := guard.Handle(engine, http.MethodPost, "/orders/pay", rule, handler); err != nil {
		b.t.Fatal(err)
	}
	return engine
}

// grpcStock returns the client of a service with a method that locks the name in the request.
func (b *fixture) grpcStock(handler func(context.Context) error) health.HealthClient {
	b.t.Helper()
	guard, err := grpclock.New(b.locks, grpclock.WithRules(ruleset.Rule{
		Endpoint: ruleset.GRPC(health.Health_Check_FullMethodName), Key: "#{req.service}", WaitTime: time.Hour,
	}))
	if err != nil {
		b.t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()), grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()))
	health.RegisterHealthServer(server, &stockServer{handler: handler})
	if err := guard.Check(server); err != nil {
		b.t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 16)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		conn.Close()
		server.Stop()
		wg.Wait()
	})
	return health.NewHealthClient(conn)
}

type stockServer struct {
	health.UnimplementedHealthServer

	handler func(context.Context) error
}

// Check calls the handler.
func (s *stockServer) Check(ctx context.Context, _ *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if err := s.handler(ctx); err != nil {
		return nil, status.Error(codes.Aborted, err.Error())
	}
	return &health.HealthCheckResponse{}, nil
}
