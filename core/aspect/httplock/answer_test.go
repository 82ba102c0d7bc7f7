package httplock_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// outside serves the bench behind a middleware and sends one request over the network.
func (b *bench) outside(t *testing.T, middleware func(http.ResponseWriter, *http.Request, http.Handler)) (*http.Response, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { middleware(w, r, b.mux) }))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders/42/pay", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("the answer is cut off: %v", err)
	}
	return answer, string(body)
}

// If a layer around the guard has set a Content-Length for the handler's answer, the guard's answer is still
// complete.
func TestAnswer_OuterContentLength(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule    ruleset.Rule
		options []any
		code    int
		body    string
	}{
		"refused":      {byID(func(r *ruleset.Rule) { r.Message = "paying" }), nil, 409, `{"type":"https://interlock-go.github.io/problems/lock-busy","title":"Another request for the same resource is in progress","status":409,"detail":"paying"}`},
		"null":         {byID(func(r *ruleset.Rule) { r.OnBusy, r.Response = failpolicy.NullResponse, `{"later":true}` }), nil, 200, `{"later":true}`},
		"skipped":      {byID(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }), nil, 204, ""},
		"error writer": {byID(), []any{httplock.WithErrorWriter(writeBusy)}, 409, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.options...)
			if err := b.guard.HandleFunc(b.mux, pattern, ok, tt.rule); err != nil {
				t.Fatal(err)
			}
			b.redis.Take("order:42", time.Hour)
			answer, body := b.outside(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				w.Header().Set("Content-Length", "3")
				w.Header().Set("ETag", `"1"`)
				next.ServeHTTP(w, r)
			})
			if answer.StatusCode != tt.code || body != tt.body {
				t.Errorf("got %d %q, want %d %q", answer.StatusCode, body, tt.code, tt.body)
			}
			if answer.Header.Get("ETag") != "" || answer.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %v", answer.Header)
			}
		})
	}
}

func writeBusy(w http.ResponseWriter, _ *http.Request, refusal *aspect.RefusedError) {
	w.WriteHeader(refusal.Status.HTTP)
	_, _ = io.WriteString(w, "busy")
}

// zipWriter is the writer of a middleware that compresses every answer.
type zipWriter struct {
	http.ResponseWriter
	io.Writer
}

func (z zipWriter) Write(p []byte) (int, error) { return z.Writer.Write(p) }

// A layer that compresses every answer compresses the answer of the guard, too.
func TestAnswer_BehindACompressingLayer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rule := byID(func(r *ruleset.Rule) { r.OnBusy, r.Response = failpolicy.NullResponse, `{"later":true}` })
	if err := b.guard.HandleFunc(b.mux, pattern, ok, rule); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("order:42", time.Hour)
	answer, body := b.outside(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Origin, Accept-Encoding")
		compressor := gzip.NewWriter(w)
		defer compressor.Close()
		next.ServeHTTP(zipWriter{w, compressor}, r)
	})
	if body != `{"later":true}` || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the client reads %q, the header is %v", body, answer.Header)
	}
}
