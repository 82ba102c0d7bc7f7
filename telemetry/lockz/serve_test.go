package lockz_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// The page is HTML with all of its parts, to be neither kept, framed nor fed from elsewhere.
func TestPage_IsOnePageWithoutAnythingFromElsewhere(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
		b.granted(done)
	})
}

// Methods and paths that are none of the page's are refused as such.
func TestPage_MethodsAndPaths(t *testing.T) {
	t.Parallel()
	b := newBed(t)
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

// Links are queries, so that the page works wherever it is mounted.
func TestPage_LinksAreQueries(t *testing.T) {
	t.Parallel()
	b := newBed(t, lockz.WithFleet())
	links := attributes(t, b.get("/").Body.String(), "href", "src", "action")
	if len(links) < 5 {
		t.Errorf("links: %q", links)
	}
	for _, link := range links {
		if !strings.HasPrefix(link, "?") && !strings.HasPrefix(link, "#") && link != "data:," {
			t.Errorf("link %q", link)
		}
	}
}

// attributes gives the values of attributes of all elements.
func attributes(t *testing.T, body string, names ...string) []string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			for _, name := range names {
				if a.Key == name {
					found = append(found, a.Val)
				}
			}
		}
	}
	return found
}

// Programs get the same as JSON, by a query or by what they accept.
func TestPage_JSON(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// The query says how many rows are listed; what is no number counts as none.
func TestPage_Rows(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// Text from outside cannot become a part of the page, nor fill it: tags, quotes, control
// characters, changes of direction, bytes that are no UTF-8, and 10 kB of anything.
func TestPage_HostileText(t *testing.T) {
	t.Parallel()
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</table></main><h1>gone</h1>`, `javascript:alert(1)`,
		"line\nbreak\ttab\x00nul\x1b[31m", "\u202egnirts\u202c\u2066", "bad\xff\xfe\x80utf8", "z" + strings.Repeat("\u0301", 500),
		strings.Repeat("k", 10_000), strings.Repeat("😀<b>", 2_000), "{{.}}", "%00%0a",
	}
	inBubble(t, func(b *bed) {
		locks := b.client(core.WithMaxKeyLength(20_000))
		for _, text := range hostile {
			_, hold := b.take(b.t.Context(), locks.Lock(text), core.Label(text))
			if _, _, err := locks.Lock(text).Acquire(b.t.Context(), core.WaitTime(0), core.Label(text)); err == nil {
				t.Fatal("taken twice")
			}
			defer b.free(hold)
		}
		body := b.get("/").Body.String()
		if len(body) > 400_000 {
			t.Errorf("the page has %d bytes", len(body))
		}
		doc, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode {
				count[n.Data]++
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") {
					t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
				}
			}
		}
		if count["script"] != 1 || count["img"] != 0 || count["h1"] != 1 || count["b"] != 0 || count["main"] != 1 {
			t.Errorf("elements: %v", count)
		}
		for _, raw := range []string{"\x00", "\x1b", "\u202e", "\u2066", "\xff", "z\u0301\u0301\u0301"} {
			if strings.Contains(body, raw) {
				t.Errorf("the page has %q", raw)
			}
		}
		if !strings.Contains(body, "(10000 bytes)") || !strings.Contains(body, `\u202e`) {
			t.Error("the page says nowhere that something was cut, or escaped")
		}
		var s lockz.Snapshot
		if err := json.Unmarshal(b.get("/?format=json").Body.Bytes(), &s); err != nil || s.HoldsTotal != len(hostile) {
			t.Errorf("as JSON: %d holds, %v", s.HoldsTotal, err)
		}
	}, lockz.WithRawKeys())
}

// 10,000 callers wait for one key. In JSON the first ones of them are listed in order; on the page
// they are one row.
func TestPage_TenThousandWaiters(t *testing.T) {
	t.Parallel()
	const many = 10_000
	inBubble(t, func(b *bed) {
		locks := b.client(core.WithMaxWaiters(2*many), core.WithMaxWaitersPerKey(2*many))
		_, hold := b.take(b.t.Context(), locks.Lock("a"))
		ctx, cancel := context.WithCancel(b.t.Context())
		var ends []func() error
		for range many / 100 {
			ends = append(ends, b.waitMany(ctx, locks.Lock("a"), 100))
			time.Sleep(time.Millisecond) // the clock of the bubble
		}
		s := b.Snapshot()
		if s.WaitersTotal != many || len(s.Waiters) != lockz.DefaultRows || s.Waiters[999].Position > 1000 {
			t.Errorf("%d waiters, %d listed, the last of them at %d", s.WaitersTotal, len(s.Waiters), s.Waiters[len(s.Waiters)-1].Position)
		}
		if w := b.get("/"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "10000 waiting callers, by key: 1 of 1 row") {
			t.Errorf("the page answers %d with %d bytes", w.Code, w.Body.Len())
		}
		cancel()
		for _, end := range ends {
			_ = end()
		}
		b.free(hold)
		if s := b.Snapshot(); s.WaitersTotal != 0 {
			t.Errorf("%d waiters in the end", s.WaitersTotal)
		}
	})
}
