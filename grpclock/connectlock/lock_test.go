package connectlock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
	_ "github.com/interlock-go/interlock/grpclock/internal/tillpb" // its methods declare rules
)

const orderKey = "order:#{req.order_id}"

// payLock returns a Lock for Pay that does not wait.
func payLock(locks *core.Client, more ...func(*ruleset.Rule)) connect.Interceptor {
	r := ruleset.Rule{WaitTime: ruleset.NoWait}
	for _, change := range more {
		change(&r)
	}
	return connectlock.Lock(locks, path("Pay"), orderKey, r)
}

func TestLock_Procedure(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepare(t, patient, s)
	b.serve(payLock(b.locks))
	s.pay = func(ctx context.Context, req *request) (*receipt, error) {
		if core.MustHold(ctx, "order:"+req.GetOrderId()); connectlock.Hold(ctx) == nil {
			t.Error("the handler runs without a hold")
		}
		return reply("paid " + req.GetOrderId()), nil
	}
	b.redis.Take("order:1", time.Hour)
	for protocol := range protocols {
		b.call(t.Context(), protocol, "Pay", []string{"2"}).check(t, "paid 2")
		if b.held("order:2") {
			t.Errorf("%s: the lock is held after the call", protocol)
		}
		got := b.call(t.Context(), protocol, "Pay", []string{"1"})
		if reasons, hints := got.reasons(); codeOf(got) != connect.CodeAborted || len(reasons) != 1 || reasons[0] != "interlock/LOCK_BUSY" || hints != 1 {
			t.Errorf("%s, the lock is taken: got %v, reasons %q, %d hints", protocol, got.err, reasons, hints)
		}
		b.call(t.Context(), protocol, "Track", []string{"1"}).check(t, "packed 1", "sent 1")
	}
	s.pay = nil
	b.call(t.Context(), "connect", "Free", []string{"1"}).check(t, "paid 1")

	locking, err := aspect.Of(b.locks)
	if err != nil {
		t.Fatal(err)
	}
	locking.Suspend()
	b.call(t.Context(), "connect", "Pay", []string{"1"}).check(t, "paid 1")
}

func TestLock_Skip(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepare(t, patient, s)
	b.serve(payLock(b.locks, func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }))
	b.redis.Take("order:1", time.Hour)
	for protocol := range protocols {
		got := b.call(t.Context(), protocol, "Pay", []string{"1"})
		got.check(t, "")
		if got.lockStatus() != "skipped" || s.ran.Load() != 0 {
			t.Errorf("%s: got X-Lock-Status %q, and the handler ran %d times", protocol, got.lockStatus(), s.ran.Load())
		}
	}
}

// The interceptor waits in virtual time, so it is called without a server.
func TestLock_Waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := prepare(t, patient, &shop{})
		h := connect.NewUnaryHandlerSimple(path("Pay"), b.shop.servePay, connect.WithInterceptors(
			payLock(b.locks, func(r *ruleset.Rule) { r.WaitTime = 3 * time.Second })))
		for _, tt := range []struct {
			taken  time.Duration
			status int
			after  time.Duration
		}{{time.Second, 200, 900 * time.Millisecond}, {time.Hour, 409, 2900 * time.Millisecond}} {
			b.redis.Take("order:1", tt.taken)
			began := time.Now()
			status := post(t, h, path("Pay"), `{"orderId": "1"}`)
			if waited := time.Since(began); status != tt.status || waited < tt.after {
				t.Errorf("taken for %s: got %d after %s, want %d after %s", tt.taken, status, waited, tt.status, tt.after)
			}
		}
		_ = b.locks.Close(context.Background())
	})
}

// post calls a handler with a message in JSON and returns the status.
func post(t *testing.T, h http.Handler, path, message string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// A client with the interceptor calls a server without it. A lock on the side of the client would be held twice if the
// server had it, too.
func TestLock_ClientSide(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{})
	b.serve()
	b.redis.Take("order:1", time.Hour)
	client := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Pay"), connect.WithInterceptors(payLock(b.locks)))
	singleAnswer(client.CallUnary(t.Context(), connect.NewRequest(order("1")))).check(t, "paid 1")
}

func TestLock_BesideAGuard(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepare(t, patient, s, connectlock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Name, r.Key = "all", "all" })))
	b.check()
	b.serve(payLock(b.locks), payLock(b.locks), b.guard.Interceptor()) // the second Lock is the first one
	s.pay = func(ctx context.Context, _ *request) (*receipt, error) {
		state, err := b.locks.Lock("order:1").State(ctx)
		for _, n := range state.Holders {
			if n != 1 {
				t.Errorf("the lock is held %d times", n)
			}
		}
		return reply(fmt.Sprint(len(state.Holders), b.held("all"))), err
	}
	b.call(t.Context(), "connect", "Pay", []string{"1"}).check(t, "1 true")

	same := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	payLock(same.locks)
	if err := same.guard.Check(service); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("got %v, want two rules of one name", err)
	}
}

func TestLock_Panics(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{})
	connectlock.Lock(b.locks, path("Free"), "free")
	for name, tt := range map[string]struct {
		procedure, key string
		further        []ruleset.Rule
		want           string
	}{
		"unknown field":       {path("Pay"), "order:#{req.ordr_id}", nil, "Key: 1:13: shop.v1.PayRequest has no field ordr_id"},
		"registered variable": {path("Pay"), "order:#{tenant}", nil, "WithVariable"},
		"unknown strategy":    {path("Pay"), orderKey, []ruleset.Rule{{OnBusy: "skipp"}}, "OnBusy: "},
		"fallback":            {path("Pay"), orderKey, []ruleset.Rule{{OnBusy: failpolicy.Fallback, Fallback: "queue"}}, "WithFallback"},
		"two rules":           {path("Pay"), orderKey, make([]ruleset.Rule, 2), "2 rules: write one ruleset.Rule"},
		"rule with a key":     {path("Pay"), orderKey, []ruleset.Rule{{Key: "k"}}, "has a key besides the argument"},
		"rule with endpoint":  {path("Pay"), orderKey, []ruleset.Rule{{Endpoint: ruleset.GRPC(path("Pay"))}}, "has the Endpoint"},
		"unknown procedure":   {path("Pai"), orderKey, nil, "import the generated package"},
		"no slash":            {path("Pay")[1:], orderKey, nil, `write "/shop.v1.Orders/Pay"`},
		"stream":              {path("Track"), orderKey, nil, "server-streaming: use a guard"},
		"declared":            {"/till.v1.Till/Refuse", "k", nil, ".proto file"},
		"another rule":        {path("Free"), "other", nil, "another rule: use a guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := panicOf(func() { connectlock.Lock(b.locks, tt.procedure, tt.key, tt.further...) })
			if !strings.HasPrefix(text, fmt.Sprintf("connectlock: Lock(%q): ", tt.procedure)) || !strings.Contains(text, tt.want) {
				t.Errorf("the panic is %q, want it to contain %q", text, tt.want)
			}
		})
	}
	if text := panicOf(func() { connectlock.Lock(nil, path("Pay"), orderKey) }); !strings.Contains(text, "the lock client is nil") {
		t.Errorf("no client: the panic is %q", text)
	}
}

// panicOf returns the text with which a function panics, or "".
func panicOf(do func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	do()
	return ""
}
