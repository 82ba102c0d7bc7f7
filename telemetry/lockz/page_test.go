package lockz_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// text is a section of the page without its tags; an empty id is the whole page.
func (b *bed) text(target, id string, header ...string) string {
	body := b.get(target, header...).Body.String()
	if id != "" {
		_, body, _ = strings.Cut(body, `id="`+id+`"`)
		body, _, _ = strings.Cut(body, "</section>")
	}
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "")
}

// The title and the head of the page name the service, the host, the process and Redis, without its
// password, and say whether it answers.
func TestPage_SaysWhoseItIs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// The page says of each Redis whether it answers.
func TestPage_SaysWhetherRedisAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// The id of the own client is on the page once; holders of the client are shown by their number.
func TestPage_OwnClientIsNamedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		ctx, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
		_, h2 := b.take(b.t.Context(), b.locks.Lock("b"))
		stranger := b.server.Take("shop:c", time.Minute)
		first := b.wait(ctx, b.locks.Lock("b"))
		second := b.wait(b.t.Context(), b.locks.Lock("c"), core.WaitTime(time.Hour))
		body := b.get("/").Body.String()
		number := strings.TrimPrefix(h2.Field(), b.locks.ID())
		if n := strings.Count(body, b.locks.ID()); n != 1 || strings.Count(body, ">"+number+"<") != 2 || !strings.Contains(body, stranger) {
			b.t.Errorf("the page names its client %d times, want once, and the holders %s and %s", n, number, stranger)
		}
		other := b.client()
		_, h3 := b.take(b.t.Context(), other.Lock("d"))
		if text := b.text("/", "holds"); !strings.Contains(text, "client 1"+number) || !strings.Contains(text, "client 2"+strings.TrimPrefix(h3.Field(), other.ID())) {
			b.t.Errorf("of two clients: %s", text)
		}
		b.free(h2, h3)
		b.server.Free("shop:c")
		b.granted(first, second)
		b.free(h1)
	})
}

// Lost locks are red, with the date, as a hold, as an incident, and in the numbers.
func TestPage_LossesAreRedAndDated(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.LeaseTime(time.Second))
		<-ctx.Done()
		time.Sleep(time.Hour) // the clock of the bubble
		s := b.Snapshot()
		at := s.Holds[0].LostAt
		if ago := s.Time.Sub(at); ago < time.Hour || ago > time.Hour+time.Minute || !s.LastLost.Equal(at) || s.Lost != 1 {
			b.t.Errorf("lost at %v and %v, %d in all, want one an hour before %v", at, s.LastLost, s.Lost, s.Time)
		}
		date := at.Format("2006-01-02 15:04:05")
		if s := b.json("/?format=json&q=nothing"); s.Lost != 1 || len(s.Holds) != 0 {
			b.t.Errorf("a search has changed the number of losses to %d", s.Lost)
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

// The names of rules are links if the page knows where the metrics are shown.
func TestWithDashboardURL(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// Traces are links if the page knows where a trace is shown. A place that is not an http URL with
// room for the id is refused.
func TestWithTraceURL(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// A search leaves the rows with a text in what is shown of them, and the query sorts them.
func TestPage_SearchAndSort(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		_, h1 := b.take(b.t.Context(), b.locks.Lock("order:1"), core.Label("ship"), core.LeaseTime(time.Hour))
		time.Sleep(time.Second) // the clock of the bubble
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
			b.t.Error("a search becomes a part of the page")
		}
		b.free(h1, h2)
		b.granted(waits)
	})
}

// The waiters of one key are one row. A waiter in a deadlock has a separate row.
func TestPage_WaitersByKey(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
		b.granted(first)
		b.free(h1)
	})
}

// What a button asks names the key, the holder and for how long it has held the lock.
func TestPage_ButtonNamesWhatItTakes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		b.server.Take("shop:b", time.Minute)
		time.Sleep(90 * time.Second / 2) // the clock of the bubble
		want := regexp.MustCompile(`Take ` + core.KeyHash("shop:a") + ` from\s+` + strings.TrimPrefix(hold.Field(), b.locks.ID()) + `( of rule pay)?, held for 45.0 s`)
		for _, target := range []string{"/", "/?fleet=1"} {
			if text := b.text(target, "", "X-Operator", "yes"); !want.MatchString(text) {
				b.t.Errorf("%s: no question %s: %s", target, want, text)
			}
		}
		b.free(hold)
	}, lockz.WithFleet(), lockz.WithAuthorizer(operator))
}

// A lock with more holders than the list shows has no button, since a button takes a lock from no
// holder that was not shown.
func TestFleet_NoButtonForHoldersThatAreNotShown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		var holds []*core.Hold
		for i := range 11 {
			if i == 10 && len(b.tickets("/?fleet=1", "X-Operator", "yes")) != 1 {
				b.t.Error("no button for ten holders")
			}
			_, hold := b.take(b.t.Context(), b.locks.ReadLock("a"))
			holds = append(holds, hold)
		}
		if found := b.tickets("/?fleet=1", "X-Operator", "yes"); len(found) != 0 {
			b.t.Errorf("%d buttons for eleven holders, want none", len(found))
		}
		b.free(holds...)
	}, lockz.WithFleet(), lockz.WithAuthorizer(operator))
}
