package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	goleak.VerifyTestMain(m)
}

// play runs the demonstration and returns its spans.
func play(t *testing.T) []sdktrace.ReadOnlySpan {
	t.Helper()
	all := &traces{}
	redis := redistest.New(t)
	stock, err := startStock(t.Context(), redis.Client(), all)
	if err != nil {
		t.Fatal(err)
	}
	defer stock.close()
	shop, err := startShop(t.Context(), redis.Client(), all, stock.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.close()
	if _, err := evening(t.Context(), all, shop, stock); err != nil {
		t.Fatal(err)
	}
	shop.close()
	stock.close()
	return all.kept.all()
}

// shape returns the services and names of the descendants of a span: "shop/a(stock/b)".
func shape(spans []sdktrace.ReadOnlySpan, parent trace.SpanID) string {
	var names []string
	for _, s := range spans {
		if s.Parent().SpanID() != parent {
			continue
		}
		name := service(s) + "/" + s.Name()
		if below := shape(spans, s.SpanContext().SpanID()); below != "" {
			name += "(" + below + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// attr returns an attribute about the lock.
func attr(s sdktrace.ReadOnlySpan, name string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == "distributed_lock."+name {
			return kv.Value.String()
		}
	}
	return ""
}

// One trace has both services, the waits, the holds and the work under them. The first order names
// the holder in the other service. The second order is linked to the hold of the first.
func TestTrace_OneTree(t *testing.T) {
	t.Parallel()
	spans := play(t)
	const (
		call  = "quickstart.v1.Shop/"
		order = "shop/POST /items/:item/order(shop/lock.acquire shop/lock.hold(" +
			"shop/" + call + "Buy(stock/" + call + "Buy(stock/lock.acquire stock/lock.hold))))"
		want = "customers/evening(customers/" + call + "Count(stock/" + call + "Count(stock/lock.acquire stock/lock.hold)) " +
			order + " " + order + ")"
	)
	if got := shape(spans, trace.SpanID{}); got != want {
		t.Fatalf("the spans are\n%s\nwant\n%s", got, want)
	}
	of := map[string][]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		if s.SpanContext().TraceID() != spans[0].SpanContext().TraceID() {
			t.Errorf("%s is in another trace", s.Name())
		}
		of[s.Name()+" "+attr(s, "rule")] = append(of[s.Name()+" "+attr(s, "rule")], s)
	}
	count, waits, holds := of["lock.hold count"][0], of["lock.acquire order"], of["lock.hold order"]
	if got := attr(waits[0], "blocked_by"); got == "" || got != attr(count, "holder") || len(waits[0].Links()) != 0 {
		t.Errorf("the first order is blocked by %q with the links %v, want the stock service, %q, without links", got, waits[0].Links(), attr(count, "holder"))
	}
	if links := waits[1].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != holds[0].SpanContext().SpanID() {
		t.Errorf("the second order, blocked by %q, has the links %v, want the hold of the first, %q", attr(waits[1], "blocked_by"), links, attr(holds[0], "holder"))
	}
}

// The output has every span once, and the names of the linked spans.
func TestTrace_Printed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out, "", ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"customers: evening", "stock: lock.hold", "- link to shop: lock.hold blocked_by=", "- contended at"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), " at "); n < 19 || strings.Count(out.String(), "lock.hold  at ") != 5 {
		t.Errorf("%d lines have a time:\n%s", n, out.String())
	}
}

// received is a trace collector that counts the spans of each service.
type received struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans map[string]int
}

func (r *received) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range req.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			r.spans[of.GetResource().GetAttributes()[0].GetValue().GetStringValue()] += len(scope.GetSpans())
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// With an address all spans are sent to it by OTLP before the program ends.
func TestTrace_Sent(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := &received{spans: map[string]int{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	defer running.Wait()
	defer server.Stop()
	var out bytes.Buffer
	if err := run(t.Context(), &out, "", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if got.spans["customers"] != 2 || got.spans["shop"] != 8 || got.spans["stock"] != 9 {
		t.Errorf("received %v, want 2 of the customers, 8 of the shop, 9 of the stock service", got.spans)
	}
	if !strings.Contains(out.String(), "was sent to "+listener.Addr().String()) {
		t.Errorf("printed %q", out.String())
	}
}
