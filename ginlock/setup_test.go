package ginlock_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// TestMain drops the log, because the tests provoke outages and warnings.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	gin.SetMode(gin.TestMode)
	goleak.VerifyTestMain(m)
}

const (
	prefix  = "vault:"
	payPath = "/orders/:id/pay"
	payURL  = "/orders/42/pay"
	payKey  = prefix + "order:42"
)

// pay is the rule of most tests.
var pay = ruleset.Rule{Key: "order:#{path.id}", WaitTime: 2 * time.Second}

// shop is a Gin engine with a guard over an embedded Redis.
type shop struct {
	redis  *redistest.Server
	locks  *core.Client
	guard  *ginlock.Guard
	engine *gin.Engine
}

// bubble runs a test with a shop in a synctest bubble, where waits take no time.
func bubble(t *testing.T, test func(t *testing.T, s *shop), opts ...any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, opts...)
		defer s.close(t)
		defer s.redis.Up()
		test(t, s)
	})
}

func newShop(t testing.TB, opts ...any) *shop {
	t.Helper()
	return newShopIn(t, core.DefaultBackendTimeout, opts...)
}

// newShopIn returns a shop with a backend timeout. Tests in real time need a long one, because the machine may be busy.
func newShopIn(t testing.TB, backend time.Duration, opts ...any) *shop {
	t.Helper()
	srv := redistest.New(t)
	client, own := splitOptions(opts)
	locks, err := core.New(srv.Client(), append(client, core.WithPrefix(prefix), core.WithBackendTimeout(backend))...)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := ginlock.New(locks, own...)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{redis: srv, locks: locks, guard: guard, engine: gin.New()}
}

func (s *shop) close(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.locks.Close(ctx); err != nil && !errors.Is(err, core.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// handle registers a route with a rule.
func (s *shop) handle(t testing.TB, method, path string, rule ruleset.Rule, handlers ...gin.HandlerFunc) {
	t.Helper()
	if err := s.guard.Handle(s.engine, method, path, rule, handlers...); err != nil {
		t.Fatal(err)
	}
}

// request is a request to a shop.
type request struct {
	ctx     context.Context
	method  string // default POST
	url     string // default payURL
	body    string
	typ     string // default JSON for a request with a body
	headers map[string]string
}

func (r request) build() *http.Request {
	ctx := r.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.url == "" {
		r.url = payURL
	}
	var req *http.Request
	if r.body == "" {
		req = httptest.NewRequestWithContext(ctx, r.method, r.url, nil)
	} else {
		req = httptest.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(r.body))
		if r.typ == "" {
			r.typ = "application/json"
		}
		req.Header.Set("Content-Type", r.typ)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	return req
}

// do serves a request and fails the test if the answer contains a string that no client may see.
func (s *shop) do(t testing.TB, r request) *httptest.ResponseRecorder {
	t.Helper()
	w := serve(s, r)
	s.wantNoSecrets(t, w)
	return w
}

// serve serves a request whose handler may answer with keys.
func serve(s *shop, r request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, r.build())
	return w
}

// wantNoSecrets fails the test if an answer contains a key, an owner, or a message of Redis or of an error.
func (s *shop) wantNoSecrets(t testing.TB, w *httptest.ResponseRecorder) {
	t.Helper()
	var text strings.Builder
	text.WriteString(w.Body.String())
	if err := w.Header().Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{prefix, "order:", s.locks.ID(), "redis", "Redis", "WRONGTYPE", "Operation against", "core:", "keyexpr", "EVAL", "#{", "closed"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the answer contains %q:\n%s", secret, text.String())
		}
	}
}

// held reports whether a holder has the lock with a full key.
func (s *shop) held(t testing.TB, key string) bool {
	t.Helper()
	state, err := s.locks.Lock(strings.TrimPrefix(key, prefix)).State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return len(state.Holders) > 0
}

// record keeps the events that observers get.
type record struct {
	mu        sync.Mutex
	rules     []aspect.RuleInfo
	decisions []aspect.Decision
	failures  []aspect.Failure
	warnings  []*ruleset.Problem
}

func (r *record) observeRule(i aspect.RuleInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, i)
}

func (r *record) observeDecision(_ context.Context, d aspect.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
}

func (r *record) observeFailure(_ context.Context, f aspect.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, f)
}

// want fails the test unless got and want are equal.
func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// goSet returns a set of rules in Go.
func goSet(t testing.TB, rules []ruleset.Rule, opts ...ruleset.Option) *ruleset.Set {
	t.Helper()
	set, err := ruleset.NewSet(rules, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func fallback(name string) ginlock.Option {
	return ginlock.WithFallback(name, func(c *gin.Context) { c.String(http.StatusAccepted, name) })
}

// wantErr fails the test unless an error matches another error.
func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want an error that matches %v", what, got, want)
	}
}

// wantText fails the test unless an error contains all parts.
func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want an error that contains %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q:\n%v", part, err)
		}
	}
}

// splitOptions separates the options of a guard from the options of its lock client.
func splitOptions(opts []any) (client []core.Option, guard []ginlock.Option) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case core.Option:
			client = append(client, opt)
		case ginlock.Option:
			guard = append(guard, opt)
		}
	}
	return client, guard
}

// servedShop is a shop behind a net/http server in a bubble. Its connections are pipes.
type servedShop struct {
	*shop
	client *http.Client
	dialed atomic.Int32 // connections so far
}

// serveShop runs a test with a server, which configure may change.
func serveShop(t *testing.T, configure func(*http.Server), test func(t *testing.T, s *servedShop), opts ...any) {
	t.Helper()
	bubble(t, func(t *testing.T, s *shop) {
		o := &servedShop{shop: s}
		l := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: s.engine}
		if configure != nil {
			configure(server)
		}
		done := make(chan error, 1)
		go func() { done <- server.Serve(l) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			o.dialed.Add(1)
			return l.dial(ctx)
		}}
		o.client = &http.Client{Transport: transport}
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			wantErr(t, "Serve", <-done, http.ErrServerClosed)
		}()
		test(t, o)
	}, opts...)
}

// post asks to pay the order. The error is an error of the connection.
func (o *servedShop) post(t testing.TB) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop"+payURL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// pipes is a listener without a port.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	once   atomic.Bool
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialed <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return an error.
func (p *pipes) Close() error {
	if !p.once.Swap(true) {
		close(p.closed)
	}
	return nil
}

// Addr returns the address of a pipe.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
