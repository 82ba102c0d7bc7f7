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

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// shop is a program that uses a rule file, and answers the keys that a request holds.
type shop struct {
	guard  *ginlock.Guard
	engine *gin.Engine
	routes string // the name of its routes file
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

// newShop starts the program, with the prefix shop: for its locks.
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

// The command says what the program does. The requests come one after the other: all
// keys that are locked are those of the request.
func TestKey_IsWhatAProgramLocks(t *testing.T) {
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

// keysIn are the keys that the command shows, sorted.
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

// The command finds what the program finds at its start.
func TestCheck_FindsWhatAProgramFinds(t *testing.T) {
	t.Parallel()
	s := newShop(t, "testdata/refused.yaml")
	var found []*ruleset.Problem
	collect(s.guard.Check(s.engine), &found)
	if len(found) < 8 {
		t.Fatalf("the program found only %d problems: the test shows little", len(found))
	}
	got := interlock(t, "", "check", "testdata/refused.yaml", "--routes", s.routes)
	for _, p := range found {
		place, first, _ := strings.Cut(p.Error(), "rule ")
		first, _, _ = strings.Cut(first, ": there ") // types have other names there
		first = strings.ReplaceAll(first, "main.cart", "the body")
		first = strings.ReplaceAll(first, "main.principal", "the variable principal")
		if !strings.Contains(got.stdout, place) || !strings.Contains(got.stdout, first) {
			t.Errorf("got %s\nit lacks what the program finds: %v", got, p)
		}
	}
	if n := strings.Count(got.stdout, "rule of "); n != len(found) || got.code != exitProblems {
		t.Errorf("got %d problems, the program finds %d: %s", n, len(found), got)
	}
}

// collect lists the problems that are joined in err.
func collect(err error, found *[]*ruleset.Problem) {
	if p, ok := err.(*ruleset.Problem); ok { //nolint:errorlint // what it joins is looked at one by one
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

// What the router and the guard make of a request decides, not what the flags say literally.
func TestKey_OfARequestAsTheAdapterSeesIt(t *testing.T) {
	t.Parallel()
	const rules = `rules:
  - {http: "GET /reports/{id}", key: "report:#{path.id}"}
  - {http: "POST /login", key: "login:#{client_ip}"}
  - {grpc: "/shop.v1.Orders/Cancel", key: "cancel:#{peer}"}
`
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"HEAD is served by the handler of GET": {[]string{"HEAD /reports/7"}, "key      report:7"},
		"an address has one form":              {[]string{"POST /login", "--var", "client_ip=::ffff:192.0.2.7"}, "key        login:192.0.2.7"},
		"a peer has no port":                   {[]string{"/shop.v1.Orders/Cancel", "--var", "peer=192.0.2.7:5050"}, "key   cancel:192.0.2.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := interlock(t, rules, append([]string{"key", "-"}, c.args...)...); got.code != exitFine || !strings.Contains(got.stdout, "  "+c.want+"\n") {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A path may have the characters that begin a parameter.
func TestKey_OfAPathWithColons(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{http: "POST /files/*", key: "#{query.x}"}]`
	for target, want := range map[string]string{
		"/files/a:b/{c}*?x=1": "key      1\n",
		"/other/a:b?x=1":      "no rule is for http POST /other/a:b\n",
	} {
		if got := interlock(t, rules, "key", "-", "POST "+target); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

// A body that the program does not decode into its type is refused there.
func TestKey_OfATypedBody(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{http: "POST /cart", key: "cart:#{body.sku}"}]`
	for body, want := range map[string]string{
		`{"SKU": "a"}`: "key   cart:a\n",
		`{"sku": 5}`:   "no key  body.sku needs a body of JSON: sku is no string\n",
	} {
		if got := interlock(t, rules, "key", "-", "POST /cart", "--routes", "testdata/routes.json", "-d", body); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
