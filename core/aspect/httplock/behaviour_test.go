package httplock_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: ruleset.HTTP(pattern), ID: "path.id", Tenant: `header["X-Tenant"]`, Response: `{"receipt": "later"}`,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Declares: true, Start: serveProgram,
	})
}

const pattern = "POST /orders/{id}/pay"

func answering(do func(context.Context, string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := do(r.Context(), r.PathValue("id"))
		switch {
		case err != nil && r.Context().Err() != nil:
			return // the handler has given up
		case err != nil:
			http.Error(w, "declined", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}
}

// serveProgram serves a program of package adaptertest.
func serveProgram(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", answering(p.Queue)), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(), httplock.WithSet(p.Set),
	}
	guard, err := httplock.New(p.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	mux := http.NewServeMux()
	_ = guard.HandleFunc(mux, pattern, answering(p.Pay), slices.Concat(p.InCode, p.Declared)...)
	return adaptertest.ServeHTTP(tb, mux, adaptertest.Server{
		Check: func() error { return guard.Check() }, Aspect: guard.Aspect(), Hold: httplock.Hold,
	}), nil
}
