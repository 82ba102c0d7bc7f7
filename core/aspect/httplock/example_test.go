package httplock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A whole service: a mux, a handler with its rule, and the check. A client gets 409 while another holder has the lock.
func Example() {
	redis, err := redistest.Start() // your own Redis client, in production
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()
	locks, err := core.New(redis.Client())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locks.Close(context.Background()) }()
	guard, err := httplock.New(locks)
	if err != nil {
		fmt.Println(err)
		return
	}

	mux := http.NewServeMux()
	pay := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "paid "+r.PathValue("id"))
	}
	err = guard.HandleFunc(mux, "POST /orders/{id}/pay", pay, ruleset.Rule{
		Key: "order:pay:#{path.id}", WaitTime: ruleset.NoWait, LeaseTime: 30 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := guard.Check(); err != nil {
		fmt.Println(err)
		return
	}

	post := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, http.NoBody))
		return w
	}
	paid := post("/orders/42/pay")
	fmt.Println(paid.Code, paid.Body)

	redis.Take("order:pay:42", time.Minute)
	busy := post("/orders/42/pay")
	fmt.Println(busy.Code, busy.Header().Get("Content-Type"), busy.Header().Get("Retry-After") != "")
	fmt.Println(post("/orders/43/pay").Code)
	// Output:
	// 200 paid 42
	// 409 application/problem+json true
	// 200
}

// A Lock stands around the handler of a route. It needs no guard.
func ExampleLock() {
	redis, err := redistest.Start() // your own Redis client, in production
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()
	locks, err := core.New(redis.Client())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locks.Close(context.Background()) }()

	mux := http.NewServeMux()
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "paid "+r.PathValue("id"))
	})
	mux.Handle("POST /orders/{id}/pay", httplock.Lock(locks, "order:pay:#{path.id}", ruleset.Rule{WaitTime: ruleset.NoWait})(pay))

	post := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, http.NoBody))
		return w
	}
	paid := post("/orders/42/pay")
	fmt.Println(paid.Code, paid.Body)
	redis.Take("order:pay:42", time.Minute)
	fmt.Println(post("/orders/42/pay").Code)
	// Output:
	// 200 paid 42
	// 409
}
