package lockz_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/html"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// text returns a section of the page without tags. An empty id stands for the whole page.
func (b *fixture) text(target, id string, header ...string) string {
	body := b.get(target, header...).Body.String()
	if id != "" {
		_, body, _ = strings.Cut(body, `id="`+id+`"`)
		body, _, _ = strings.Cut(body, "</section>")
	}
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "")
}

// The title and the head of the page name the service, the host, the process and Redis without its password.
func TestPage_Title(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		secret := b.clientOf(b.server.Client(func(o *redis.Options) { o.Username, o.Password, o.DB = "", "hunter2", 3 }))
		host, err := os.Hostname()
		if err != nil {
			b.t.Fatal(err)
		}
		body := b.get("/").Body.String()
		title := regexp.MustCompile(`<title>(.*)</title>`).FindStringSubmatch(body)
		for _, part := range []string{"checkout", host, "process " + strconv.Itoa(os.Getpid()), b.locks.Address(), secret.Address(), "database 3"} {
			if title == nil || !strings.Contains(title[1], part) {
				b.t.Errorf("the title %q has no %q", title, part)
			}
		}
		if strings.Contains(body, "hunter2") {
			b.t.Error("the page shows a password")
		}
		if s := b.Snapshot(); s.Service != "checkout" || s.Host != host || s.PID != os.Getpid() || s.Clients[0].Redis != b.locks.Address() {
			b.t.Errorf("got %s, %s, %d, %+v", s.Service, s.Host, s.PID, s.Clients)
		}
	}, lockz.WithService("checkout"))
}

// The page says for each Redis whether it answers.
func TestPage_RedisState(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		if text := b.text("/", "numbers"); !strings.Contains(text, "which answers") || strings.Contains(text, "no answer") {
			b.t.Errorf("with Redis: %s", text)
		}
		b.server.Down()
		text, body := b.text("/", "numbers"), b.get("/").Body.String()
		if !strings.Contains(text, "which does not answer: ") || !strings.Contains(text, "no answer") || !strings.Contains(body, "(does not answer)</title>") {
			b.t.Errorf("without Redis: %s", text)
		}
		if !strings.Contains(b.get("/?format=json").Body.String(), `"error": "`) {
			b.t.Error("JSON does not say that Redis does not answer")
		}
		b.server.Up()
	})
}

// The page contains the id of the client once. It shows holders of this client by their numbers.
func TestPage_OwnClient(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
		_, h2 := b.take(b.t.Context(), b.locks.Lock("b"))
		stranger := b.server.Take("shop:c", time.Minute)
		first := b.wait(ctx, b.locks.Lock("b"))
		second := b.wait(b.t.Context(), b.locks.Lock("c"), core.WaitTime(time.Hour))
		body := b.get("/").Body.String()
		number := strings.TrimPrefix(h2.Field(), b.locks.ID())
		if n := strings.Count(body, b.locks.ID()); n != 1 || strings.Count(body, ">"+number+"<") != 2 || !strings.Contains(body, stranger) {
			b.t.Errorf("the page names its client %d times, want once, with the holders %s and %s", n, number, stranger)
		}
		other := b.client()
		_, h3 := b.take(b.t.Context(), other.Lock("d"))
		if text := b.text("/", "holds"); !strings.Contains(text, "client 1"+number) || !strings.Contains(text, "client 2"+strings.TrimPrefix(h3.Field(), other.ID())) {
			b.t.Errorf("of two clients: %s", text)
		}
		b.free(h2, h3)
		b.server.Free("shop:c")
		b.wantGranted(first, second)
		b.free(h1)
	})
}

// A lost lock is red and has a date, in the holds, in the incidents and in the numbers.
func TestPage_Losses(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.LeaseTime(time.Second))
		<-ctx.Done()
		time.Sleep(time.Hour) // virtual time
		s := b.Snapshot()
		at := s.Holds[0].LostAt
		if ago := s.Time.Sub(at); ago < time.Hour || ago > time.Hour+time.Minute || !s.LastLost.Equal(at) || s.Lost != 1 {
			b.t.Errorf("lost at %v and %v, %d in total, want one an hour before %v", at, s.LastLost, s.Lost, s.Time)
		}
		date := at.Format("2006-01-02 15:04:05")
		if s := b.json("/?format=json&q=nothing"); s.Lost != 1 || len(s.Holds) != 0 {
			b.t.Errorf("a search changed the number of losses to %d", s.Lost)
		}
		for id, class := range map[string]string{"numbers": `<div class="bad"><dt>Lost`, "holds": `class="bad"`, "incidents": `class="bad"`} {
			_, section, _ := strings.Cut(b.get("/").Body.String(), `id="`+id+`"`)
			section, _, _ = strings.Cut(section, "</section>")
			if !strings.Contains(section, class) || !strings.Contains(section, date) {
				b.t.Errorf("%s: no %s, or no %s: %s", id, class, date, section)
			}
		}
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrLost) {
			b.t.Error(err)
		}
	})
}

// A search keeps only rows that contain a text, and the query determines their order.
func TestPage_SearchAndSort(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, h1 := b.take(b.t.Context(), b.locks.Lock("order:1"), core.Label("ship"), core.LeaseTime(time.Hour))
		time.Sleep(time.Second) // virtual time
		_, h2 := b.take(b.t.Context(), b.locks.Lock("order:2"), core.Label("pay"), core.LeaseTime(time.Minute))
		waits := b.wait(b.t.Context(), b.locks.Lock("order:2"), core.Label("Refund"))
		if _, _, err := b.locks.Lock("order:1").Acquire(b.t.Context(), core.WaitTime(0), core.Label("ship")); !errors.Is(err, core.ErrNotAcquired) {
			b.t.Fatal(err)
		}
		one, two := core.KeyHash("shop:order:1"), core.KeyHash("shop:order:2")
		for query, want := range map[string]string{
			"q=PAY": two, "q=order": "", "q=" + one[:6]: one, "q=" + h2.Field(): two,
			"": one + two, "sort=rule": two + one, "sort=lease": two + one, "sort=waiting": two + one, "sort=nonsense": one + two,
		} {
			var got string
			for _, h := range b.json("/?format=json&" + query).Holds {
				got += h.KeyHash
			}
			if got != want {
				b.t.Errorf("%q: got the holds %s, want %s", query, got, want)
			}
			if text := b.text("/?"+query, "holds"); strings.Contains(text, one) != strings.Contains(want, one) || strings.Contains(text, two) != strings.Contains(want, two) {
				b.t.Errorf("%q: the page has %s", query, text)
			}
		}
		if s := b.json("/?format=json&q=refund"); len(s.Holds) != 0 || len(s.Waiters) != 1 || s.RefusalsTotal != 1 || len(s.Refusals) != 0 {
			b.t.Errorf("refund: %d holds, %d waiters, %d refusals", len(s.Holds), len(s.Waiters), len(s.Refusals))
		}
		if body := b.get(`/?q="><script>`).Body.String(); strings.Count(body, "<script") != 1 {
			b.t.Error("the text of a search is not escaped")
		}
		b.free(h1, h2)
		b.wantGranted(waits)
	})
}

// All waiters for a key share one row. A waiter in a deadlock has a separate row.
func TestPage_WaitersByKey(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		pay, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
		ship, h2 := b.take(b.t.Context(), b.locks.Lock("z"))
		ctx, cancel := context.WithCancel(b.t.Context())
		many := b.waitMany(ctx, b.locks.Lock("a"), 50)
		first := b.wait(pay, b.locks.Lock("z"), core.WaitTime(time.Hour))
		second := b.wait(ship, b.locks.Lock("a"), core.WaitTime(time.Minute))
		persist()
		text := b.text("/", "waiters")
		if !strings.Contains(text, "52 waiting callers, by key: 3 of 3 rows") || !strings.Contains(text, "(0 of 50 hold something)") || strings.Count(text, "Deadlock 1") != 2 {
			b.t.Errorf("got %s", text)
		}
		cancel()
		_, _ = many(), second()
		b.free(h2)
		b.wantGranted(first)
		b.free(h1)
	})
}

func TestPage_SingularAndPlural(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("ours"))
		for target, want := range map[string]string{"/": "1 of 1 hold, the oldest first", "/?fleet=1": "1 lock, locks with"} {
			if body := b.get(target).Body.String(); !strings.Contains(body, want) {
				t.Errorf("%s does not say %q", target, want)
			}
		}
		b.server.Take("shop:theirs", time.Minute)
		if body := b.get("/?fleet=1").Body.String(); !strings.Contains(body, "2 locks, locks with") {
			t.Error("the fleet does not say 2 locks")
		}
		b.free(hold)
	}, lockz.WithFleet())
}

// All links are queries, so the page works under any path.
func TestPage_Links(t *testing.T) {
	t.Parallel()
	b := newFixture(t, lockz.WithFleet())
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

// attributes returns the values of the named attributes of all elements.
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

// Text from outside cannot inject elements or flood the page. The test uses tags, quotes, control characters,
// changes of direction, bytes that are not UTF-8, and 10 kB of text.
func TestPage_HostileText(t *testing.T) {
	t.Parallel()
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</table></main><h1>gone</h1>`, `javascript:alert(1)`,
		"line\nbreak\ttab\x00nul\x1b[31m", "\u202egnirts\u202c\u2066", "bad\xff\xfe\x80utf8", "z" + strings.Repeat("\u0301", 500),
		strings.Repeat("k", 10_000), strings.Repeat("😀<b>", 2_000), "{{.}}", "%00%0a",
	}
	run(t, func(b *fixture) {
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
			t.Error("the page does not show that a text was cut or escaped")
		}
		var s lockz.Snapshot
		if err := json.Unmarshal(b.get("/?format=json").Body.Bytes(), &s); err != nil || s.HoldsTotal != len(hostile) {
			t.Errorf("as JSON: %d holds, %v", s.HoldsTotal, err)
		}
	}, lockz.WithRawKeys())
}

// 10,000 callers wait for one key. JSON lists the first callers in order, and the page has one row for all of
// them.
func TestPage_TenThousandWaiters(t *testing.T) {
	t.Parallel()
	const many = 10_000
	run(t, func(b *fixture) {
		locks := b.client(core.WithMaxWaiters(2*many), core.WithMaxWaitersPerKey(2*many))
		_, hold := b.take(b.t.Context(), locks.Lock("a"))
		ctx, cancel := context.WithCancel(b.t.Context())
		var ends []func() error
		for range many / 100 {
			ends = append(ends, b.waitMany(ctx, locks.Lock("a"), 100))
			time.Sleep(time.Millisecond) // virtual time
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

// WithTraceURL turns trace ids into links. It refuses a pattern that is not an http URL with
// {trace_id}.
func TestWithTraceURL(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		id := trace.TraceID{1, 2, 3}
		ctx := trace.ContextWithSpanContext(b.t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}}))
		_, hold := b.take(ctx, b.locks.Lock("a"))
		if body := b.get("/").Body.String(); !strings.Contains(body, `<a href="https://grafana.example/explore?trace=`+id.String()+`&amp;org=1"`) {
			b.t.Errorf("no link: %s", b.text("/", "holds"))
		}
		b.free(hold)
	}, lockz.WithTraceURL("https://grafana.example/explore?trace={trace_id}&org=1"))
	for _, pattern := range []string{"", "https://grafana.example/", "javascript:alert({trace_id})", "/traces/{trace_id}", "https:///{trace_id}", "http://a\x7f/{trace_id}"} {
		if _, err := lockz.New(lockz.WithTraceURL(pattern)); err == nil || !strings.Contains(err.Error(), "{trace_id}") {
			t.Errorf("%q: got %v, want an error that says what to write", pattern, err)
		}
	}
}

// WithDashboardURL turns the names of rules into links. It refuses a pattern that is not an http URL with
// {rule}.
func TestWithDashboardURL(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("POST /a&b"))
		if body := b.get("/").Body.String(); !strings.Contains(body, `<a href="https://grafana.example/d/interlock?var-rule=POST&#43;%2Fa%26b&amp;orgId=1"><bdi>POST /a&amp;b</bdi></a>`) {
			b.t.Errorf("no link: %s", body)
		}
		b.free(hold)
	}, lockz.WithDashboardURL("https://grafana.example/d/interlock?var-rule={rule}&orgId=1"))
	for _, pattern := range []string{"", "https://grafana.example/", "javascript:alert({rule})", "/rules/{rule}"} {
		if _, err := lockz.New(lockz.WithDashboardURL(pattern)); err == nil || !strings.Contains(err.Error(), "WithDashboardURL") || !strings.Contains(err.Error(), "{rule}") {
			t.Errorf("%q: got %v, want an error that says what to write", pattern, err)
		}
	}
}
