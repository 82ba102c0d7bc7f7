package lockz_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// operator allows requests with the right header and returns an error for all others.
func operator(r *http.Request) error {
	if r.Header.Get("X-Operator") != "yes" {
		return errors.New("who are you?")
	}
	return nil
}

// tickets returns the tickets of the buttons of a page.
func (b *fixture) tickets(target string, header ...string) []string {
	b.t.Helper()
	return ticketsIn(b.get(target, header...))
}

func ticketsIn(w *httptest.ResponseRecorder) (found []string) {
	for part := range strings.SplitSeq(w.Body.String(), `name="ticket" value="`) {
		if ticket, _, ok := strings.Cut(part, `"`); ok {
			found = append(found, ticket)
		}
	}
	return found[1:] // without the text before the first button
}

// press sends the form of a button.
func (b *fixture) press(ticket string, header ...string) *httptest.ResponseRecorder {
	return post(b.Page, "/?release=1", ticket, header...)
}

func post(h http.Handler, target, ticket string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(url.Values{"ticket": {ticket}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// An operator presses the button of a hold. The hold is lost at once, the next waiter gets the lock, and the log names the
// operator and the holder.
func TestRelease_Operator(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		next := b.wait(b.t.Context(), b.locks.Lock("a"))
		tickets := b.tickets("/", "X-Operator", "yes")
		if len(tickets) != 1 {
			t.Fatalf("%d buttons, want 1", len(tickets))
		}
		w := b.press(tickets[0], "X-Operator", "yes", "Sec-Fetch-Site", "same-origin", "Authorization", "Basic YW5uYTpzZWNyZXQ=")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?notice=released" {
			t.Fatalf("%d %v: %s", w.Code, w.Header(), w.Body)
		}
		if err := next(); err != nil {
			t.Errorf("the waiter: %v", err)
		}
		<-ctx.Done()
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrLost) {
			t.Errorf("the holder got %v, want ErrLost", err)
		}
		logged := b.logs.records(t, "lock released by force")
		if len(logged) != 1 {
			t.Fatalf("logged %v", logged)
		}
		for key, want := range map[string]string{
			"operator": "anna at 192.0.2.1:1234", "key_hash": core.KeyHash("shop:a"), "lost_by": hold.Field(), "level": "WARN",
		} {
			if logged[0][key] != want {
				t.Errorf("%s: logged %v, want %s", key, logged[0][key], want)
			}
		}
		what := map[string]int{}
		for _, e := range b.Snapshot().Incidents {
			what[e.What]++
		}
		if what["force released"] != 1 || what["lost"] != 1 {
			t.Errorf("incidents: %v, want a release and a loss", what)
		}
		if body := b.get("/?notice=released").Body.String(); !strings.Contains(body, "The lock was released") {
			t.Error("the page does not say that it was released")
		}
	}, lockz.WithAuthorizer(operator))
}

// The question of a button contains the key, the holder, and the time for which it has held the lock.
func TestRelease_QuestionOfAButton(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		b.server.Take("shop:b", time.Minute)
		time.Sleep(90 * time.Second / 2) // virtual time
		want := regexp.MustCompile(`Take ` + core.KeyHash("shop:a") + ` from\s+` + strings.TrimPrefix(hold.Field(), b.locks.ID()) + `( of rule pay)?, held for 45.0 s`)
		for _, target := range []string{"/", "/?fleet=1"} {
			if text := b.text(target, "", "X-Operator", "yes"); !want.MatchString(text) {
				b.t.Errorf("%s: no question %s: %s", target, want, text)
			}
		}
		b.free(hold)
	}, lockz.WithFleet(), lockz.WithAuthorizer(operator))
}

// Without WithAuthorizer the page has no buttons, and a POST is refused.
func TestRelease_OffByDefault(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		if found := b.tickets("/"); len(found) != 0 {
			t.Errorf("buttons: %q", found)
		}
		if w := b.press("x"); w.Code != http.StatusForbidden {
			t.Errorf("a POST: %d, want 403", w.Code)
		}
		b.free(hold)
	})
}

// A request that is not allowed, comes from another site or has no valid ticket releases nothing.
func TestRelease_Forbidden(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		if found := b.tickets("/"); len(found) != 0 {
			t.Errorf("buttons for another user: %q", found)
		}
		ticket := b.tickets("/", "X-Operator", "yes")[0]
		altered := "A" + ticket[1:]
		if altered == ticket {
			altered = "B" + ticket[1:]
		}
		for name, tt := range map[string]struct {
			ticket string
			header []string
			want   int
		}{
			"not allowed":       {ticket, nil, http.StatusForbidden},
			"another site":      {ticket, []string{"X-Operator", "yes", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
			"a sibling site":    {ticket, []string{"X-Operator", "yes", "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
			"another origin":    {ticket, []string{"X-Operator", "yes", "Origin", "http://evil.example"}, http.StatusForbidden},
			"no ticket":         {"", []string{"X-Operator", "yes"}, http.StatusConflict},
			"an altered ticket": {altered, []string{"X-Operator", "yes"}, http.StatusConflict},
			"not base64":        {"%%%", []string{"X-Operator", "yes"}, http.StatusConflict},
		} {
			if w := b.press(tt.ticket, tt.header...); w.Code != tt.want {
				t.Errorf("%s: got %d, want %d", name, w.Code, tt.want)
			}
		}
		time.Sleep(16 * time.Minute) // virtual time, until the ticket has expired
		if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusConflict {
			t.Errorf("an old ticket: got %d, want 409", w.Code)
		}
		b.free(hold) // fails if the lock is lost
	}, lockz.WithAuthorizer(operator))
}

// A button takes the lock only from the holder that the operator saw. If another holder has the lock when the
// button is pressed, that holder keeps the lock, and the record contains it.
func TestRelease_NextHolderKeepsTheLock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, first := b.take(b.t.Context(), b.locks.Lock("a"))
		ticket := b.tickets("/", "X-Operator", "yes")[0]
		b.free(first)
		_, second := b.take(b.t.Context(), b.locks.Lock("a"))
		if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusConflict {
			t.Errorf("got %d, want 409", w.Code)
		}
		if records := b.logs.records(t, "lock not released by force"); len(records) != 1 || records[0]["held_by"] != second.Field() || records[0]["lost_by"] != nil {
			t.Errorf("logged %v, want that it is held by %s", records, second.Field())
		}
		b.free(second)
	}, lockz.WithAuthorizer(operator))
}

// Callers of a process pass the lock on under one field. A button takes the lock only from the hold that the
// operator saw, even after its Handover. The next hold with the same field keeps the lock.
func TestRelease_NextHolderWithTheSameFieldKeepsTheLock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, first := b.take(b.t.Context(), b.locks.Lock("a"))
		targets := []string{"/", "/?fleet=1"}
		var old []string
		for _, target := range targets {
			old = append(old, b.tickets(target, "X-Operator", "yes")[0])
		}
		next := make(chan *core.Hold, 1)
		go func() {
			_, hold, _ := b.locks.Lock("a").Acquire(b.t.Context())
			next <- hold
		}()
		synctest.Wait()
		time.Sleep(time.Millisecond) // virtual time, so that the holds begin at different times
		b.free(first)
		second := <-next
		if second.Field() != first.Field() {
			t.Fatal("the lock was not passed on under its field, so the test proves nothing")
		}
		for i, ticket := range old {
			if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusConflict {
				t.Errorf("the button of %s: got %d %s, want 409", targets[i], w.Code, w.Body)
			}
		}
		if logged := b.logs.records(t, "lock not released by force"); len(logged) != 2 || logged[0]["held_by"] != second.Field() {
			t.Errorf("logged %v, want the current holder, twice", logged)
		}
		ticket := b.tickets("/", "X-Operator", "yes")[0]
		_, moved := second.Handover()
		if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusSeeOther {
			t.Errorf("the button of the second hold: got %d %s, want 303", w.Code, w.Body)
		}
		if err := moved.Release(b.t.Context()); !errors.Is(err, core.ErrLost) {
			t.Errorf("the second holder got %v, want ErrLost", err)
		}
	}, lockz.WithAuthorizer(operator), lockz.WithFleet())
}

// A button takes the lock only from the holders that it names. Readers in other rows and later readers keep the
// lock.
func TestRelease_HiddenReadersKeepTheLock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		var readers []*core.Hold
		read := func() {
			_, hold := b.take(b.t.Context(), b.locks.ReadLock("a"))
			readers = append(readers, hold)
		}
		for range 9 {
			read()
		}
		mine := b.tickets("/", "X-Operator", "yes")[0]
		fleet := b.tickets("/?fleet=1", "X-Operator", "yes")[0]
		read()
		for _, press := range []struct {
			ticket string
			left   int
		}{{mine, 9}, {fleet, 1}} {
			if w := b.press(press.ticket, "X-Operator", "yes"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?notice=others" {
				t.Errorf("%d %v, want the notice that other holders remain", w.Code, w.Header())
			}
			after, err := b.locks.ReadLock("a").State(b.t.Context())
			if err != nil {
				b.t.Fatal(err)
			}
			if _, holds := after.Holders[readers[9].Field()]; !holds || len(after.Holders) != press.left {
				t.Errorf("%d readers are left, the last reader among them: %t; want %d", len(after.Holders), holds, press.left)
			}
		}
		for _, hold := range readers {
			_ = hold.Release(b.t.Context()) // some have lost the lock
		}
	}, lockz.WithAuthorizer(operator), lockz.WithFleet())
}

// If Redis does not answer, the page reports that the result is not known.
func TestRelease_RedisDown(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.LeaseTime(5*time.Second))
		ticket := b.tickets("/", "X-Operator", "yes")[0]
		b.server.Down()
		if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusBadGateway {
			t.Errorf("got %d, want 502", w.Code)
		}
		if logged := b.logs.records(t, "lock not released by force"); len(logged) != 1 {
			t.Errorf("logged %v", logged)
		}
		b.server.Up()
		time.Sleep(10 * time.Second) // virtual time, in which the lease expires and the client finds Redis again
		_ = hold.Release(b.t.Context())
	}, lockz.WithAuthorizer(operator))
}

// A hold that Close left to its lease has no button, because no open client can release it.
func TestRelease_ClosedClient(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		other := b.client()
		_, hold := b.take(b.t.Context(), other.Lock("a"))
		ctx, cancel := context.WithCancel(b.t.Context())
		cancel()
		if err := other.Close(ctx); !errors.Is(err, core.ErrClosed) {
			b.t.Errorf("Close: got %v", err)
		}
		if found, body := b.tickets("/", "X-Operator", "yes"), b.text("/", "holds"); len(found) != 0 || !strings.Contains(body, hold.Field()) {
			t.Errorf("buttons: %d, want none, for the hold of\n%s", len(found), body)
		}
		_ = hold.Release(b.t.Context())
	}, lockz.WithAuthorizer(operator))
}

// If the name of the operator cannot be found, nothing is released, because the log must name an operator.
func TestRelease_OperatorPanics(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		ticket := b.tickets("/")[0]
		func() {
			defer func() { _ = recover() }() // as net/http does
			b.press(ticket)
		}()
		b.free(hold)
	}, lockz.WithAuthorizer(func(*http.Request) error { return nil }), lockz.WithOperator(func(*http.Request) string { panic("no name") }))
}

// If the lock is already free, no holder loses it. The page reports that, and nothing is logged.
func TestRelease_FreeLock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		ticket := b.tickets("/", "X-Operator", "yes")[0]
		b.free(hold)
		w := b.press(ticket, "X-Operator", "yes")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?notice=free" {
			b.t.Errorf("got %d, Location %q", w.Code, w.Header().Get("Location"))
		}
		for _, text := range []string{"lock released by force", "lock not released by force"} {
			if records := b.logs.records(b.t, text); len(records) != 0 {
				b.t.Errorf("logged %v", records)
			}
		}
	}, lockz.WithAuthorizer(operator))
}

// Behind a proxy that rewrites Host, like nginx by default, only the header Origin shows the site of the
// page, because over plain HTTP a browser sends no Sec-Fetch-Site. A button still works in the browser that
// got it.
func TestRelease_ProxyRewritesHost(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		backend, err := url.Parse("http://10.0.0.7:8080")
		if err != nil {
			b.t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(backend) },
			Transport: handlerTransport{b.Page},
		}
		const place = "http://ops.example/debug/locks"
		press := func(ticket string, cookies []*http.Cookie, header ...string) *httptest.ResponseRecorder {
			for _, c := range cookies {
				header = append(header, "Cookie", c.Name+"="+c.Value)
			}
			return post(proxy, place+"?release=1", ticket, append(header, "X-Operator", "yes")...)
		}
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		shown := ask(proxy, http.MethodGet, place, "X-Operator", "yes")
		ticket, cookies := ticketsIn(shown)[0], shown.Result().Cookies()
		stranger := ask(proxy, http.MethodGet, place, "X-Operator", "yes").Result().Cookies()
		for name, w := range map[string]*httptest.ResponseRecorder{
			"another site, without the cookie": press(ticket, nil, "Origin", "http://evil.example"),
			"the cookie of another browser":    press(ticket, stranger, "Origin", "http://ops.example"),
			"a sibling site with the cookie":   press(ticket, cookies, "Origin", "http://evil.ops.example", "Sec-Fetch-Site", "same-site"),
			"another site with the cookie":     press(ticket, cookies, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"),
			"the cookie, without its ticket":   press("x", cookies, "Origin", "http://ops.example"),
		} {
			if w.Code != http.StatusForbidden {
				b.t.Errorf("%s: got %d, want 403", name, w.Code)
			}
		}
		for _, c := range cookies {
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
				b.t.Errorf("the cookie %v is not for this site only", c)
			}
		}
		if w := press(ticket, cookies, "Origin", "http://ops.example"); w.Code != http.StatusSeeOther {
			b.t.Errorf("the button: got %d %s, want 303", w.Code, w.Body)
		}
		if err := hold.Release(b.t.Context()); !errors.Is(err, core.ErrLost) {
			b.t.Errorf("the holder got %v, want ErrLost", err)
		}
	}, lockz.WithAuthorizer(operator))
}

// handlerTransport calls a handler without a network.
type handlerTransport struct{ http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	return w.Result(), nil
}
