package gozerolock_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/gozerolock"
	"github.com/interlock-go/interlock/failpolicy"
)

const route = "POST /orders/:id/pay"

func TestMain(m *testing.M) {
	logx.Disable() // panics, reloads and failures are part of the tests
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: ruleset.HTTP(route), ID: "path.id", Tenant: `header["X-Tenant"]`, Response: `{"receipt": "later"}`,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Start: serveProgram,
	})
}

// serveProgram serves a program of package adaptertest. The middlewares of go-zero are off: its timeout has a header of its
// own, from which a guard inside cannot remove the headers around it.
func serveProgram(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", answering(p.Queue)), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(),
	}
	for _, r := range p.InCode {
		r.Endpoint = ruleset.HTTP(route)
		opts = append(opts, httplock.WithRules(r))
	}
	if len(p.InCode) == 0 {
		opts = append(opts, httplock.WithSet(p.Set))
	}
	guard, err := httplock.New(p.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	server := newServer(tb, rest.RestConf{})
	handler := serve(tb, server, gozerolock.Routes(guard, "", rest.Route{Method: http.MethodPost, Path: "/orders/:id/pay", Handler: answering(p.Pay)}))
	return adaptertest.ServeHTTP(tb, handler, adaptertest.Server{
		Check: func() error { return gozerolock.Check(server, guard) }, Aspect: guard.Aspect(), Hold: httplock.Hold,
	}), nil
}

// newServer returns a server without routes.
func newServer(tb testing.TB, conf rest.RestConf) *rest.Server {
	tb.Helper()
	server, err := rest.NewServer(conf)
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

// serve adds routes to a server and returns its handler.
func serve(tb testing.TB, server *rest.Server, routes []rest.Route, opts ...rest.RouteOption) http.Handler {
	tb.Helper()
	server.AddRoutes(routes, opts...)
	handler, err := rest.NewServerless(server)
	if err != nil {
		tb.Fatal(err)
	}
	return http.HandlerFunc(handler.Serve)
}

func answering(do func(context.Context, string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := do(r.Context(), pathvar.Vars(r)["id"])
		switch {
		case err != nil && httplock.Lost(r.Context()) != nil:
			return // the guard answers
		case err != nil:
			http.Error(w, "declined", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}
}
