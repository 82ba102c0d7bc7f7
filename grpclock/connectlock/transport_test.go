package connectlock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

// allowGET lets clients call a procedure with GET.
func allowGET() connect.Option { return connect.WithIdempotency(connect.IdempotencyNoSideEffects) }

// A call by GET, or with compressed messages or JSON, takes the lock of its procedure, too.
func TestTransport_AllForms(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Message = "paid elsewhere" })))
	method := ""
	b.serveHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method = r.Method
		b.shop.handler(connect.WithInterceptors(b.guard.Interceptor()), allowGET()).ServeHTTP(w, r)
	}))
	b.redis.Take("order:1", time.Hour)
	for name, opts := range map[string][]connect.ClientOption{
		"GET":              {connect.WithHTTPGet(), allowGET()},
		"JSON":             {connect.WithProtoJSON()},
		"compressed":       {connect.WithSendGzip()},
		"gRPC, compressed": {connect.WithGRPC(), connect.WithSendGzip()},
		"gRPC-Web, JSON":   {connect.WithGRPCWeb(), connect.WithProtoJSON()},
	} {
		client := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Pay"), opts...)
		got, err := client.CallUnary(t.Context(), connect.NewRequest(order("2")))
		if err != nil || got.Msg.GetReceipt() != "paid 2" {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if want := map[bool]string{true: http.MethodGet, false: http.MethodPost}[name == "GET"]; method != want {
			t.Errorf("%s: the call arrived as %s", name, method)
		}
		_, err = client.CallUnary(t.Context(), connect.NewRequest(order("1")))
		if connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "paid elsewhere") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// No cache stores an answer of the guard, whatever the handler or a layer around it allows.
func TestTransport_AnswersNotCached(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*ruleset.Rule)
		id     string
		want   string
	}{
		"refused":  {func(*ruleset.Rule) {}, "1", "no-store"},
		"skipped":  {func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }, "1", "no-store"},
		"null":     {func(r *ruleset.Rule) { r.OnBusy = failpolicy.NullResponse }, "1", "no-store"},
		"unlocked": {func(r *ruleset.Rule) { r.OnBusy = failpolicy.Proceed }, "1", ""},
		"locked":   {func(*ruleset.Rule) {}, "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay", tt.change)))
			got := make(chan []string, 1)
			b.serveHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "public, max-age=86400")
				b.shop.handler(connect.WithInterceptors(b.guard.Interceptor()), allowGET()).ServeHTTP(w, r)
				got <- w.Header().Values("Cache-Control")
			}))
			b.redis.Take("order:1", time.Hour)
			client := connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path("Pay"), connect.WithHTTPGet(), allowGET())
			_, err := client.CallUnary(t.Context(), connect.NewRequest(order(tt.id)))
			if header := <-got; strings.Join(header[1:], ",") != tt.want {
				t.Errorf("got %q, %v", header, err)
			}
		})
	}
}

// Check reports a procedure whose handler has no interceptor, although another handler has one.
func TestTransport_HandlerWithoutInterceptor(t *testing.T) {
	t.Parallel()
	b := prepare(t, patient, &shop{}, connectlock.WithRules(rule("Pay")))
	b.redis.Take("order:1", time.Hour)
	for name, tt := range map[string]struct {
		handler http.Handler
		code    connect.Code
	}{
		"with":    {b.shop.handler(connect.WithInterceptors(b.guard.Interceptor())), connect.CodeAborted},
		"without": {b.shop.handler(), 0},
	} {
		server := httptest.NewServer(tt.handler)
		client := connect.NewClient[request, receipt](server.Client(), server.URL+path("Pay"), connect.WithInterceptors(b.guard.Interceptor()))
		_, err := client.CallUnary(t.Context(), connect.NewRequest(order("1")))
		if tt.code == 0 && err != nil || tt.code != 0 && connect.CodeOf(err) != tt.code {
			t.Errorf("%s: got %v", name, err)
		}
		server.Close()
	}
}
