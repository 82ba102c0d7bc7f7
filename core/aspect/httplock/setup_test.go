package httplock_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

// TestMain drops the log, because the tests provoke outages and warnings.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// bench is a guard over an embedded Redis.
type bench struct {
	redis *redistest.Server
	locks *core.Client
	guard *httplock.Guard
	mux   *http.ServeMux
}

func newBench(t *testing.T, opts ...any) *bench {
	t.Helper()
	srv := redistest.New(t)
	client, own := splitOptions(opts)
	locks, err := core.New(srv.Client(), append([]core.Option{core.WithBackendTimeout(10 * time.Second)}, client...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	guard, err := httplock.New(locks, own...)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{srv, locks, guard, http.NewServeMux()}
}

// until waits until a condition is true. The test fails at its time limit.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal("the condition did not become true")
		case <-time.After(time.Millisecond):
		}
	}
}

// do serves a request.
func (b *bench) do(method, target string, body io.Reader, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	for _, do := range change {
		do(r)
	}
	w := httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func byID(change ...func(*ruleset.Rule)) ruleset.Rule {
	r := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
	for _, do := range change {
		do(&r)
	}
	return r
}

type warnings []string

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { *w = append(*w, p.Error()) }}}
}

// splitOptions separates the options of a guard from the options of its lock client.
func splitOptions(opts []any) (client []core.Option, guard []httplock.Option) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case core.Option:
			client = append(client, opt)
		case httplock.Option:
			guard = append(guard, opt)
		}
	}
	return client, guard
}
