package connectlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
	_ "github.com/interlock-go/interlock/grpclock/internal/tillpb" // a service with options
)

// decisions records the decisions of a guard.
type decisions struct {
	mu   sync.Mutex
	list []aspect.Decision
}

func (d *decisions) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Decision: d.observeDecision}}
}

func (d *decisions) observeDecision(_ context.Context, decision aspect.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, decision)
}

func (d *decisions) take() []aspect.Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}

// wantAll checks that an error contains every string.
func wantAll(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q:\n%v", text, err)
		}
	}
}

func TestCheck_AllProblems(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithServerFirst(path("Chat"), path("Chta")), connectlock.WithRules(
		rule("Pya"), rule("Chat"),
		rule("Pay", func(r *ruleset.Rule) { r.Key = "order:#{req.ordr_id}" }),
		rule("Import", func(r *ruleset.Rule) { r.OnBusy, r.Response = failpolicy.NullResponse, `{"receit": "none"}` }),
		rule("Track", func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "queue" }),
		ruleset.Rule{Endpoint: ruleset.GRPC("/admin.Till/Close"), Key: "till:#{req.id}", OnBusy: failpolicy.Skip},
	))
	wantAll(t, b.guard.Check(service, "shop.v1.Ordres", "/admin.Till/Close"),
		`Check: no service "shop.v1.Ordres" is registered: did you mean "shop.v1.Orders"?`,
		`Pya: Endpoint: matches no method: did you mean "/shop.v1.Orders/Pay"?`,
		"write req.order_id", `unknown field "receit"`, `no handler "queue"`,
		"WithServerFirst leaves req out for /shop.v1.Orders/Chat",
		`WithServerFirst: matches no method: did you mean "/shop.v1.Orders/Chat"?`,
		"no descriptor of /admin.Till/Close is registered, so its expressions cannot use req",
		"it is not known whether callers of /admin.Till/Close expect a reply",
	)
}

func TestCheck_NamesOfAService(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	wantAll(t, b.guard.Check(), "matches no method: give Check its service")
	for _, name := range []string{service, "/" + service, "/" + service + "/"} {
		if err := b.guard.Check(name); err != nil {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

// A name that is not a full name is an error. The error explains full names and suggests the service that
// is probably meant.
func TestCheck_UnknownService(t *testing.T) {
	t.Parallel()
	const near, far = "did you mean \"shop.v1.Orders\"? A full name begins with the package of the .proto file",
		"write its full name, which begins with the package of the .proto file, such as shop.v1.Orders; and import its generated package, or give its file to WithDescriptors"
	for name, want := range map[string]string{
		"Orders":         `no service "Orders" is registered: ` + near,
		"/Orders/":       `no service "Orders" is registered: ` + near,
		"v1.Orders":      `no service "v1.Orders" is registered: ` + near,
		"shop.v1.orders": `no service "shop.v1.orders" is registered: ` + near,
		"ders":           `no service "ders" is registered: ` + far,
		"warehouse":      `no service "warehouse" is registered: ` + far,
		"":               `no service "" is registered: ` + far,
	} {
		b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
		if err := b.guard.Check(name, service); err == nil || err.Error() != "ruleset: Check: "+want {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}

// The name of a procedure may begin with or without a slash.
func TestCheck_NamesOfAProcedure(t *testing.T) {
	t.Parallel()
	for _, name := range []string{path("Pay"), strings.TrimPrefix(path("Pay"), "/")} {
		b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
		if err := b.guard.Check(name); err != nil {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestCheck_OptionsOfProtoFile(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	wantAll(t, b.guard.Check(service, "till.v1.Till"), `tillpb/till.proto: rule of grpc /till.v1.Till/Queue: fallback: no handler "queue": none is registered: add one with WithFallback("queue", …)`)
}

// If no handler has the interceptor, no procedure is guarded.
func TestCheck_MissingInterceptor(t *testing.T) {
	t.Parallel()
	locks, err := core.New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(t.Context()) }()
	guard, err := connectlock.New(locks, connectlock.WithRules(rule("Pay"), rule("Chat")))
	if err != nil {
		t.Fatal(err)
	}
	unary, streaming := "rule of grpc /shop.v1.Orders/Pay: nothing guards unary procedures", "rule of grpc /shop.v1.Orders/Chat: nothing guards streaming procedures"
	all := guard.Interceptor()
	wantAll(t, guard.Check(service), unary, streaming, "connect.WithInterceptors")
	(&shop{}).handler(connect.WithInterceptors(connect.UnaryInterceptorFunc(all.WrapUnary)))
	err = guard.Check(service)
	wantAll(t, err, streaming)
	if strings.Contains(err.Error(), unary) {
		t.Errorf("got %v", err)
	}
	(&shop{}).handler(connect.WithInterceptors(all))
	if err := guard.Check(service); err != nil {
		t.Error(err)
	}
}

func TestWithFallback_OtherMessage(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{},
		connectlock.WithFallback("none", func(context.Context, *request) (proto.Message, error) { return nil, nil }),
		connectlock.WithFallback("types", func(context.Context, *receipt) (*receipt, error) { return reply("x"), nil }),
		connectlock.WithRules(
			rule("Pay", func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "none" }),
			rule("Free", func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "types" }),
		))
	wantAll(t, b.guard.Check(service), `"types" is func(shop.v1.PayReply) shop.v1.PayReply: /shop.v1.Orders/Free takes shop.v1.PayRequest`)
	b.serve(b.guard.Interceptor())
	b.redis.Take("order:1", time.Minute)
	for _, method := range []string{"Pay", "Free"} {
		if got := b.call(t.Context(), "connect", method, []string{"1"}); codeOf(got) != connect.CodeInternal {
			t.Errorf("%s: got %v, want internal", method, got.err)
		}
	}
}

func TestNew_AllProblems(t *testing.T) {
	t.Parallel()
	_, err := connectlock.New(nil,
		nil, connectlock.WithStreamFallback("queue", nil),
		connectlock.WithProfile("default", ruleset.Rule{OnBusy: "skp"}), connectlock.WithDescriptors(nil),
		connectlock.WithVariable("req", func(context.Context) (string, error) { return "", nil }),
	)
	wantAll(t, err, "connectlock: New: nil Option", `connectlock: WithStreamFallback("queue"): the handler is nil`,
		"connectlock: WithDescriptors(nil)", `WithVariable: keyexpr: the variable "req" is built in: choose another name`, "the lock client is nil", "skp")
}

func TestNew_DefaultsAndProfiles(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{},
		connectlock.WithProfile("default", ruleset.Rule{OnBusy: failpolicy.Skip}),
		connectlock.WithProfile("impatient", ruleset.Rule{WaitTime: ruleset.NoWait}),
		connectlock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "all", Profile: "impatient"}))
	b.redis.Take("all", time.Minute)
	for _, kind := range kinds {
		if got := b.call(t.Context(), "connect", kind, []string{"1"}); got.err != nil || got.lockStatus() != failpolicy.MarkSkipped {
			t.Errorf("%s: got %v, header %q", kind, got.err, got.lockStatus())
		}
	}
}

func TestUnmatched_Allocations(t *testing.T) {
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	var next connect.StreamingHandlerFunc = func(context.Context, connect.StreamingHandlerConn) error { return nil }
	stream := b.guard.Interceptor().WrapStreamingHandler(next)
	unary := b.guard.Interceptor().WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return nil, errors.ErrUnsupported
	})
	var req connect.AnyRequest = connect.NewRequest(order("1"))
	var conn connect.StreamingHandlerConn = bareConn{}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, _ = unary(ctx, req)
		_ = stream(ctx, conn)
	}); n != 0 {
		t.Errorf("%v allocations for calls without a rule, want 0", n)
	}
}

// bareConn is a connection with only a spec.
type bareConn struct{ connect.StreamingHandlerConn }

func (bareConn) Spec() connect.Spec {
	return connect.Spec{Procedure: "/shop.v1.Orders/Track", StreamType: connect.StreamTypeServer}
}

// The interceptor does not change the calls of a client.
func TestInterceptor_ClientsUnchanged(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{})
	b.serve(b.guard.Interceptor())
	compiled := &ruleCounter{}
	locks, err := core.New(b.redis.Client(), core.WithObserver(compiled.observer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	other, err := connectlock.New(locks, connectlock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("*"), Key: "all", WaitTime: ruleset.NoWait}))
	if err != nil {
		t.Fatal(err)
	}
	b.redis.Take("all", time.Minute)
	client := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Pay"), connect.WithInterceptors(other.Interceptor()))
	singleAnswer(client.CallUnary(t.Context(), connect.NewRequest(order("1")))).check(t, "paid 1")
	tracking := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Track"), connect.WithInterceptors(other.Interceptor()))
	s, err := tracking.CallServerStream(t.Context(), connect.NewRequest(order("1")))
	if err != nil {
		t.Fatal(err)
	}
	for s.Receive() { // reads until the end
	}
	if err := errors.Join(s.Err(), s.Close()); err != nil {
		t.Error(err)
	}
	if compiled.n != 0 {
		t.Errorf("%d rules were compiled for methods of other servers", compiled.n)
	}
}

// ruleCounter counts the rules that come into force. It needs no mutex, because only one goroutine compiles
// rules.
type ruleCounter struct{ n int }

func (c *ruleCounter) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: func(aspect.RuleInfo) { c.n++ }}}
}
