package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// shop is a program with a rule file. It answers each request with the keys of its locks.
type shop struct {
	guard  *ginlock.Guard
	engine *gin.Engine
	routes string // the path of its routes file
}

type (
	principal struct{ Tenant string }
	item      struct {
		Count int `json:"count"`
	}
	cart struct {
		SKU   string `json:"sku"`
		Items []item `json:"items"`
	}
)

// newShop starts the program. The prefix of its locks is shop:.
func newShop(t *testing.T, rules string) *shop {
	t.Helper()
	server, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	locks, err := core.New(server.Client(), core.WithPrefix("shop:"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close(context.Background()) })
	set, err := ruleset.Open(rules)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := ginlock.New(locks,
		ginlock.WithVariable("user", func(*gin.Context) (string, error) { return "ann", nil }),
		ginlock.WithVariable("principal", func(*gin.Context) (principal, error) { return principal{"t1"}, nil }),
		ginlock.WithFallback("queue", func(*gin.Context) {}),
		ginlock.WithBody[cart]("POST /cart"),
	)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{guard: guard, engine: gin.New(), routes: filepath.Join(t.TempDir(), "routes.json")}
	handler := answerKeys(server.Client())
	s.engine.Use(guard.Middleware(set))
	for _, path := range []string{"/orders/:id/pay", "/orders/open/:what", "/cart"} {
		s.engine.POST(path, handler)
	}
	s.engine.PUT("/files/*name", handler)
	s.engine.DELETE("/orders/:id", handler)
	s.engine.PATCH("/orders/:id", handler)
	s.writeRoutes(t)
	return s
}

// answerKeys answers with all keys that are locked.
func answerKeys(rdb redis.UniversalClient) gin.HandlerFunc {
	return func(c *gin.Context) {
		keys := rdb.Keys(c.Request.Context(), "shop:*").Val()
		slices.Sort(keys)
		c.String(http.StatusOK, strings.Join(keys, "\n"))
	}
}

func (s *shop) writeRoutes(t *testing.T) {
	t.Helper()
	var file bytes.Buffer
	if err := s.guard.WriteRoutes(&file, s.engine); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.routes, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The command shows the keys that the program locks. The requests run one after the other, so that all
// locked keys belong to the request.
func TestKey_SameAsProgram(t *testing.T) {
	s := newShop(t, "testdata/served.yaml")
	for _, c := range []struct {
		method, target, body string
		header               http.Header
	}{
		{"POST", "/orders/42/pay?mode=now", `{"items": [{"count": 2}, {"count": 1}]}`, http.Header{"Content-Type": {"application/json"}}},
		{"POST", "/orders/42/pay?mode=async", `{"items": [{"count": 2}]}`, http.Header{"Content-Type": {"application/json"}}},
		{"POST", "/orders/4%2F2%3A%25/pay?mode=a%3Ab", `{"items": [{"count": 2}]}`, http.Header{"Content-Type": {"application/json"}}},
		{"POST", "/orders/a%20b%3A%25/pay?mode=a%3Ab", `{"items": [{"count": 2}]}`, http.Header{"Content-Type": {"application/json"}}},
		{"POST", "/orders/open/pay", "", http.Header{"X-Id": {"7"}}},
		{"POST", "/cart", "", http.Header{"Cookie": {"session=a%20b"}}},
		{"PUT", "/files/a/b.txt", "x=%7B1%7D", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}},
		{"DELETE", "/orders/42?id=1", "", nil},
	} {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
			args := []string{
				"key", "testdata/served.yaml", c.method + " " + c.target, "--prefix", "shop:", "--routes", s.routes, "-d", c.body,
				"--var", "user=ann", "--var", `principal={"Tenant": "t1"}`, "--var", "client_ip=192.0.2.1",
			}
			for name, values := range c.header {
				r.Header[name] = values
				args = append(args, "-H", name+": "+values[0])
			}
			w := httptest.NewRecorder()
			s.engine.ServeHTTP(w, r)
			got := interlock(t, "", args...)
			if keys := strings.Join(keysIn(got.stdout), "\n"); (w.Code == http.StatusOK) != (got.code == exitFine) || w.Code == http.StatusOK && keys != w.Body.String() {
				t.Errorf("got %s, the program locked %d %s", got, w.Code, w.Body)
			}
		})
	}
}

// keysIn returns the keys that the command shows, sorted.
func keysIn(output string) []string {
	var keys []string
	for line := range strings.Lines(output) {
		if key, ok := strings.CutPrefix(strings.TrimSpace(line), "key "); ok {
			keys = append(keys, strings.TrimSpace(key))
		}
	}
	slices.Sort(keys)
	return keys
}

// The command reports the same problems as the program at its start.
func TestCheck_SameAsProgram(t *testing.T) {
	t.Parallel()
	s := newShop(t, "testdata/refused.yaml")
	var found []*ruleset.Problem
	collect(s.guard.Check(s.engine), &found)
	if len(found) < 8 {
		t.Fatalf("the program found only %d problems, so the test proves little", len(found))
	}
	got := interlock(t, "", "check", "testdata/refused.yaml", "--routes", s.routes)
	for _, p := range found {
		place, first, _ := strings.Cut(p.Error(), "rule ")
		first, _, _ = strings.Cut(first, ": there ") // the program uses the Go names of types
		first = strings.ReplaceAll(first, "main.cart", "the body")
		first = strings.ReplaceAll(first, "main.principal", "the variable principal")
		if !strings.Contains(got.stdout, place) || !strings.Contains(got.stdout, first) {
			t.Errorf("got %s\nit lacks a problem that the program finds: %v", got, p)
		}
	}
	if n := strings.Count(got.stdout, "rule of "); n != len(found) || got.code != exitProblems {
		t.Errorf("got %d problems, the program finds %d: %s", n, len(found), got)
	}
}

// collect lists the problems that are joined in err.
func collect(err error, found *[]*ruleset.Problem) {
	if p, ok := err.(*ruleset.Problem); ok { //nolint:errorlint // its parts are checked one by one
		*found = append(*found, p)
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			collect(e, found)
		}
	} else if inner := errors.Unwrap(err); inner != nil {
		collect(inner, found)
	}
}
