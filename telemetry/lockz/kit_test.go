package lockz_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	logging.Disable()                              // go-redis prints failed dials
	slog.SetDefault(slog.New(slog.DiscardHandler)) // clients and rules also log to the default logger
	goleak.VerifyTestMain(m)
}

// fixture is a page, a client that it observes, and the logs and metrics that they write.
type fixture struct {
	*lockz.Page

	t      *testing.T
	locks  *core.Client
	server *redistest.Server
	logs   *logBuffer
	meters *sdkmetric.ManualReader
}

// run runs a test on an embedded Redis in a synctest bubble.
func run(t *testing.T, test func(b *fixture), opts ...lockz.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newFixture(t, opts...)) })
}

func newFixture(t *testing.T, opts ...lockz.Option) *fixture {
	t.Helper()
	b := &fixture{t: t, server: redistest.New(t), logs: &logBuffer{}, meters: sdkmetric.NewManualReader()}
	base := []lockz.Option{
		lockz.WithLogger(slog.New(slog.NewJSONHandler(b.logs, nil))),
		lockz.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.meters))),
	}
	page, err := lockz.New(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	b.Page = page
	b.locks = b.client()
	return b
}

// client creates another lock client that the page observes.
func (b *fixture) client(opts ...core.Option) *core.Client {
	b.t.Helper()
	return b.clientOf(b.server.Client(func(o *redis.Options) { o.MaxRetries = -1 }), opts...)
}

// clientOf is like client, but for a given Redis.
func (b *fixture) clientOf(rdb *redis.Client, opts ...core.Option) *core.Client {
	b.t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithObserver(b.Page.Observer()), core.WithPrefix("shop:")}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
			b.t.Error(err)
		}
	})
	return locks
}

// take acquires a lock that must be free.
func (b *fixture) take(ctx context.Context, lock core.Lock, opts ...core.AcquireOption) (context.Context, *core.Hold) {
	b.t.Helper()
	ctx, hold, err := lock.Acquire(ctx, opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	return ctx, hold
}

// free releases holds, none of which may be lost.
func (b *fixture) free(holds ...*core.Hold) {
	b.t.Helper()
	for _, h := range holds {
		if err := h.Release(context.WithoutCancel(b.t.Context())); err != nil {
			b.t.Error(err)
		}
	}
}

// wait starts a caller that waits for a taken lock. It returns when the caller is queued. The caller releases
// the lock as soon as it gets it. done waits for the caller to end.
func (b *fixture) wait(ctx context.Context, lock core.Lock, opts ...core.AcquireOption) (done func() error) {
	b.t.Helper()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		var hold *core.Hold
		if _, hold, err = lock.Acquire(ctx, opts...); err == nil {
			err = hold.Release(context.WithoutCancel(ctx))
		}
	})
	synctest.Wait()
	return func() error {
		wg.Wait()
		return err
	}
}

// wantGranted waits for callers to end. Each must have got its lock.
func (b *fixture) wantGranted(done ...func() error) {
	b.t.Helper()
	for _, end := range done {
		if err := end(); err != nil {
			b.t.Error(err)
		}
	}
}

// wantRefused waits for callers to end. None may have got its lock.
func (b *fixture) wantRefused(done ...func() error) {
	b.t.Helper()
	for _, end := range done {
		if err := end(); !errors.Is(err, core.ErrNotAcquired) {
			b.t.Error(err)
		}
	}
}

// get sends a GET request to the page.
func (b *fixture) get(target string, header ...string) *httptest.ResponseRecorder {
	return ask(b.Page, http.MethodGet, target, header...)
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// countDeadlocks returns the value of the counter of deadlocks, or -1 if the counter has no series. It must
// have a series from the start.
func (b *fixture) countDeadlocks() int64 {
	b.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := b.meters.Collect(b.t.Context(), &rm); err != nil {
		b.t.Fatal(err)
	}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "distributed_lock.deadlocks" {
				return sum.DataPoints[0].Value
			}
		}
	}
	return -1
}

// logBuffer collects JSON records.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// records returns the records with a message.
func (b *logBuffer) records(t *testing.T, message string) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(b.buf.Bytes())); dec.More(); {
		var r map[string]any
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r["msg"] == message {
			list = append(list, r)
		}
	}
	return list
}

// waitMany starts n callers that wait for a taken lock.
func (b *fixture) waitMany(ctx context.Context, lock core.Lock, n int) (done func() error) {
	b.t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, hold, err := lock.Acquire(ctx); err == nil {
				b.free(hold)
			}
		})
	}
	synctest.Wait()
	return func() error {
		wg.Wait()
		return nil
	}
}

// json returns the page as JSON.
func (b *fixture) json(target string) (s lockz.Snapshot) {
	b.t.Helper()
	if err := json.Unmarshal(b.get(target).Body.Bytes(), &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}
