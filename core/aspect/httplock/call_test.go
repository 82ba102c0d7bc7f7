package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestCall_Variables(t *testing.T) {
	t.Parallel()
	type order struct {
		Shop string `json:"shop"`
	}
	b := newBench(t,
		httplock.WithVariable("user", func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }),
		httplock.WithClientIP(func(*http.Request) string { return "192.0.2.7" }),
		httplock.WithBody[order]("POST /pay"), httplock.WithMaxBody(64))
	err := b.guard.HandleFunc(b.mux, "POST /pay", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, httplock.Hold(r.Context()).Key(), " ", string(body), err)
	}, ruleset.Rule{Key: "#{user}:#{client_ip}:#{body.shop}:#{query.n}:#{method}"})
	if err != nil {
		t.Fatal(err)
	}
	user := func(r *http.Request) {
		r.Header.Set("X-User", "ann")
		r.Header.Set("Content-Type", "application/json")
	}
	got := b.do("POST", "/pay?n=1", strings.NewReader(`{"shop":"a"}`), user)
	if want := `ann:192.0.2.7:a:1:POST {"shop":"a"}<nil>`; got.Body.String() != want {
		t.Errorf("got %q, want %q", got.Body, want)
	}
	if got := b.do("POST", "/pay?n=1", strings.NewReader(`{"shop":"`+strings.Repeat("a", 64)+`"}`), user); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: got %d", got.Code)
	}
}

func TestCaller_AfterAnEarlyRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if err := httplock.Hold(ctx).Release(ctx); err != nil {
			t.Error(err)
		}
		if ctx.Err() == nil || httplock.Caller(ctx).Err() != nil {
			t.Errorf("the context of the handler: %v, of the caller: %v", ctx.Err(), httplock.Caller(ctx).Err())
		}
		ok(w, r)
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusAccepted {
		t.Errorf("got %d", got.Code)
	}
	if ctx := t.Context(); httplock.Caller(ctx) != ctx || httplock.Hold(ctx) != nil {
		t.Error("Hold outside a guard is not nil")
	}
}

// A handler can use Flush, ReadFrom, informational answers and the connection, as with net/http.
func TestWriter_OfNetHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		w.(http.Flusher).Flush()
		if _, err := io.Copy(w, strings.NewReader("paid")); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.mux)
	defer server.Close()
	response, err := server.Client().Post(server.URL+"/orders/42", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "paid" || response.StatusCode != http.StatusCreated {
		t.Errorf("got %d %q %v", response.StatusCode, body, err)
	}
}
