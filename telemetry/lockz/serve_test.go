package lockz_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// The page is HTML with all sections. Its headers forbid caching, frames and content from other sites.
func TestServeHTTP_Page(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		done := b.wait(b.t.Context(), b.locks.Lock("a"))
		w := b.get("/debug/locks")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q", policy)
		}
		body := w.Body.String()
		for _, part := range []string{core.KeyHash("shop:a"), "pay", "1 of 1 hold, the oldest", "1 waiting caller, by key: 1 of 1 row", "Hottest keys", "polyline", b.locks.ID()} {
			if part != "polyline" && !strings.Contains(body, part) {
				t.Errorf("the page has no %q", part)
			}
		}
		for _, foreign := range []string{"http://", "https://", "//cdn", "style=", "onclick", "shop:a"} {
			if strings.Contains(body, foreign) {
				t.Errorf("the page has %q", foreign)
			}
		}
		b.free(hold)
		b.wantGranted(done)
	})
}

// Other methods get 405, and paths below the page get 404.
func TestServeHTTP_MethodsAndPaths(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", b.Page)
	mux.Handle("/debug/locks/", b.Page)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", b.Page))
	for _, tt := range []struct {
		method, target string
		want           int
	}{
		{http.MethodGet, "/debug/locks", http.StatusOK},
		{http.MethodHead, "/debug/locks", http.StatusOK},
		{http.MethodGet, "/debug/locks/", http.StatusOK},
		{http.MethodGet, "/debug/locks/else", http.StatusNotFound},
		{http.MethodGet, "/stripped/", http.StatusOK},
		{http.MethodGet, "/stripped/else", http.StatusNotFound},
		{http.MethodGet, "/debug/locks?asset=page.css", http.StatusOK},
		{http.MethodGet, "/debug/locks?asset=page.js", http.StatusOK},
		{http.MethodGet, "/debug/locks?asset=../doc.go", http.StatusNotFound},
		{http.MethodGet, "/debug/locks?asset=process.html", http.StatusNotFound},
		{http.MethodGet, "/debug/locks?fleet=1", http.StatusNotFound},
		{http.MethodPut, "/debug/locks", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/debug/locks", http.StatusMethodNotAllowed},
		{http.MethodPost, "/debug/locks", http.StatusForbidden},
	} {
		w := ask(mux, tt.method, tt.target)
		if w.Code != tt.want {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.target, w.Code, tt.want)
		}
		if (w.Code == http.StatusMethodNotAllowed) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: Allow is %q", tt.method, tt.target, w.Header().Get("Allow"))
		}
	}
}

// A program gets JSON by the query or by the header Accept.
func TestServeHTTP_JSON(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		for name, w := range map[string]interface{ Result() *http.Response }{
			"query":  b.get("/?format=json"),
			"accept": b.get("/", "Accept", "application/json"),
		} {
			answer := w.Result()
			var s lockz.Snapshot
			decoder := json.NewDecoder(answer.Body)
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if s.HoldsTotal != 1 || s.Holds[0].Rule != "pay" || s.Clients[0].ID != b.locks.ID() {
				t.Errorf("%s: got %+v", name, s)
			}
		}
		if w := b.get("/", "Accept", "text/html,application/json;q=0.9"); !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Error("a browser gets JSON")
		}
		b.free(hold)
	})
}

// The query sets how many rows are listed. A value that is not a positive number is ignored.
func TestServeHTTP_Rows(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		var holds []*core.Hold
		for range 5 {
			_, hold := b.take(b.t.Context(), b.locks.Lock(string(rune('a'+len(holds)))))
			holds = append(holds, hold)
		}
		for query, want := range map[string]int{"rows=2": 2, "rows=-1": 5, "rows=x": 5, "rows=999999999999999999999": 5} {
			var s lockz.Snapshot
			if err := json.Unmarshal(b.get("/?format=json&"+query).Body.Bytes(), &s); err != nil || len(s.Holds) != want || s.HoldsTotal != 5 {
				t.Errorf("%s: %d of %d holds, %v, want %d of 5", query, len(s.Holds), s.HoldsTotal, err, want)
			}
		}
		b.free(holds...)
	})
}
