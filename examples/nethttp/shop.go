package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/examples/routers"
)

// routes returns the handlers behind a router, with the locks of their rules. The error lists
// every rule that matches no route and every invalid key.
func routes(router string, guard *httplock.Guard) (http.Handler, error) {
	switch router {
	case "chi":
		return routers.Chi(guard, pay, drop)
	case "echo":
		return routers.Echo(guard, echo.WrapHandler(http.HandlerFunc(pay)), echo.WrapHandler(http.HandlerFunc(drop)))
	case "mux":
		return mux(guard)
	default:
		return nil, fmt.Errorf("-router %s: want mux, chi or echo", router)
	}
}

// mux returns a handler that needs only net/http.
func mux(guard *httplock.Guard) (http.Handler, error) {
	m := http.NewServeMux()
	if err := guard.HandleFunc(m, "POST /orders/{id}/pay", pay); err != nil {
		return nil, err
	}
	if err := guard.HandleFunc(m, "DELETE /carts/{id}", drop); err != nil {
		return nil, err
	}
	return m, guard.Check()
}

// pay runs once at a time for each order, in all instances. If the lock is lost, its context is
// canceled, pay gives up and the guard answers.
func pay(w http.ResponseWriter, r *http.Request) {
	if err := charge(r.Context()); err != nil {
		return
	}
	fmt.Fprintf(w, "order %s is paid\n", r.PathValue("id"))
}

// charge simulates the work.
func charge(ctx context.Context) error {
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func drop(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "cart %s is deleted\n", r.PathValue("id"))
}

// later answers for carts that are in use, as a fallback.
func later(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintln(w, "the cart will be deleted when it is free")
}
