package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Whatever a handler does with its writer, a client gets the same answer if it is kept
// back.
func TestBuffer_ChangesNoAnswer(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"the first status counts": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Early", "1")
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "created")
		},
		"a body settles it": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "ok")
			w.Header().Set("X-Late", "1")
			http.Error(w, "too late", http.StatusTeapot)
		},
		"status only": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		},
		"hints and nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "sum")
			w.Header().Set("X-Sum", "1")
		},
		"trailers that were not announced": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat("sum", 1000)) // more than net/http keeps back
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		},
		"no connection to hijack": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Early", "1")
			if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
				t.Error("hijacked a connection of HTTP/2")
			}
			w.WriteHeader(http.StatusUpgradeRequired)
		},
		"a file": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if _, err := io.Copy(w, strings.NewReader("file")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			straight := answered(t, newBench(t), handler)
			if kept := answered(t, newBench(t, httplock.WithBuffer(1<<20)), handler); kept != straight {
				t.Errorf("got %s\nwant %s", kept, straight)
			}
		})
	}
}

// answered is what a client of HTTP/2 gets of a handler.
func answered(t *testing.T, b *bench, handler http.HandlerFunc) string {
	t.Helper()
	if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", handler, byID()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(b.mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	response, err := server.Client().Post(server.URL+"/orders/42", "text/plain", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	response.Header.Del("Date")
	response.Header.Del("Content-Length") // net/http knows that of what comes at once
	return fmt.Sprintf("%d %v %q %v %v", response.StatusCode, response.Header, body, response.Trailer, err)
}
