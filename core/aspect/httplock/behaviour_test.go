package httplock_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, shop{})
}

// shop is a program of net/http.
type shop struct{}

const pattern = "POST /orders/{id}/pay"

func (shop) Endpoint() ruleset.Endpoint   { return ruleset.HTTP(pattern) }
func (shop) ID() string                   { return "path.id" }
func (shop) Tenant() string               { return `header["X-Tenant"]` }
func (shop) Response() string             { return `{"receipt": "later"}` }
func (shop) Declares() bool               { return true }
func (shop) Code(s failpolicy.Status) int { return s.HTTP }
func (shop) handler(do func(context.Context, string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := do(r.Context(), r.PathValue("id"))
		switch {
		case err != nil && r.Context().Err() != nil:
			return // it has given up
		case err != nil:
			http.Error(w, "declined", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}
}

func (s shop) Start(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", s.handler(p.Queue)), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(), httplock.WithSet(p.Set),
	}
	guard, err := httplock.New(p.Locks, opts...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	_ = guard.HandleFunc(mux, pattern, s.handler(p.Pay), slices.Concat(p.InCode, p.Declared)...)
	return server{adaptertest.ServeHTTP(tb, mux), guard}, nil
}

type server struct {
	adaptertest.HTTP
	guard *httplock.Guard
}

func (s server) Check() error                        { return s.guard.Check() }
func (s server) Aspect() *aspect.Aspect              { return s.guard.Aspect() }
func (s server) Hold(ctx context.Context) *core.Hold { return httplock.Hold(ctx) }
