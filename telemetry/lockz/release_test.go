package lockz_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// operator lets those in that bring the right header.
func operator(r *http.Request) error {
	if r.Header.Get("X-Operator") != "yes" {
		return errors.New("who are you?")
	}
	return nil
}

// tickets are those of the buttons of a page, as the operator gets it.
func (b *bed) tickets(target string, header ...string) []string {
	b.t.Helper()
	return ticketsIn(b.get(target, header...))
}

func ticketsIn(w *httptest.ResponseRecorder) (found []string) {
	for part := range strings.SplitSeq(w.Body.String(), `name="ticket" value="`) {
		if ticket, _, ok := strings.Cut(part, `"`); ok {
			found = append(found, ticket)
		}
	}
	return found[1:] // without what is before the first button
}

// press sends the form of a button.
func (b *bed) press(ticket string, header ...string) *httptest.ResponseRecorder {
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

// An operator presses the button of a hold: it is lost at once, whoever waits for it is next,
// and the log says who did it and who lost it.
func TestRelease_ByAnOperator(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
			t.Errorf("who waited: %v", err)
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
			t.Errorf("incidents: %v, want the release and the loss", what)
		}
		if body := b.get("/?notice=released").Body.String(); !strings.Contains(body, "The lock was released") {
			t.Error("the page does not say that it was released")
		}
	}, lockz.WithAuthorizer(operator))
}

// Without an authoriser nobody is shown a button, and a POST is refused.
func TestRelease_OffByDefault(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// Who is not let in, who comes from another site, and who was not shown a button, frees
// nothing.
func TestRelease_Refused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		if found := b.tickets("/"); len(found) != 0 {
			t.Errorf("buttons for somebody else: %q", found)
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
			"not let in":        {ticket, nil, http.StatusForbidden},
			"another site":      {ticket, []string{"X-Operator", "yes", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
			"a sibling site":    {ticket, []string{"X-Operator", "yes", "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
			"another origin":    {ticket, []string{"X-Operator", "yes", "Origin", "http://evil.example"}, http.StatusForbidden},
			"no ticket":         {"", []string{"X-Operator", "yes"}, http.StatusConflict},
			"an altered ticket": {altered, []string{"X-Operator", "yes"}, http.StatusConflict},
			"no base64":         {"%%%", []string{"X-Operator", "yes"}, http.StatusConflict},
		} {
			if w := b.press(tt.ticket, tt.header...); w.Code != tt.want {
				t.Errorf("%s: got %d, want %d", name, w.Code, tt.want)
			}
		}
		time.Sleep(16 * time.Minute) // the clock of the bubble: longer than a ticket lasts
		if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusConflict {
			t.Errorf("an old ticket: got %d, want 409", w.Code)
		}
		b.free(hold) // which is still held
	}, lockz.WithAuthorizer(operator))
}

// A button takes the lock from the holder that the operator saw, and from no later one, which the record names.
func TestRelease_NotFromTheNextHolder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// Within a run the lock passes from caller to caller under one field. A button takes it from the hold
// that the operator saw, also after a Handover, and from no later hold of the run.
func TestRelease_NotFromTheNextHolderOfARun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
		time.Sleep(time.Millisecond) // the clock of the bubble: the holds begin at different times
		b.free(first)
		second := <-next
		if second.Field() != first.Field() {
			t.Fatal("nothing is tested: the lock was not passed on under its field")
		}
		for i, ticket := range old {
			if w := b.press(ticket, "X-Operator", "yes"); w.Code != http.StatusConflict {
				t.Errorf("the button of %s: got %d %s, want 409", targets[i], w.Code, w.Body)
			}
		}
		if logged := b.logs.records(t, "lock not released by force"); len(logged) != 2 || logged[0]["held_by"] != second.Field() {
			t.Errorf("logged %v, want who holds the lock, twice", logged)
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

// A button takes the lock from the holders beside it, and not from others: readers that are not shown, because
// they are in other rows or have come later.
func TestRelease_OnlyFromHoldersThatAreShown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
				t.Errorf("%d %v, want a notice of the others", w.Code, w.Header())
			}
			after, err := b.locks.ReadLock("a").State(b.t.Context())
			if err != nil {
				b.t.Fatal(err)
			}
			if _, holds := after.Holders[readers[9].Field()]; !holds || len(after.Holders) != press.left {
				t.Errorf("%d readers are left, the one that came later: %t; want %d", len(after.Holders), holds, press.left)
			}
		}
		for _, hold := range readers {
			_ = hold.Release(b.t.Context()) // some have lost it
		}
	}, lockz.WithAuthorizer(operator), lockz.WithFleet())
}

// When Redis does not answer, the page says that it does not know.
func TestRelease_WithoutRedis(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
		time.Sleep(10 * time.Second) // the clock of the bubble: the lease ends, and Redis is found again
		_ = hold.Release(b.t.Context())
	}, lockz.WithAuthorizer(operator))
}

// A client that is closed under a hold leaves the hold to its lease. It has no button: there is nothing
// to release it through.
func TestRelease_OnlyThroughOpenClients(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// Where nobody can say who presses the button, nothing is released: the log has to name somebody.
func TestRelease_NotWithoutAName(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
		_, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		ticket := b.tickets("/")[0]
		func() {
			defer func() { _ = recover() }() // as net/http does
			b.press(ticket)
		}()
		b.free(hold)
	}, lockz.WithAuthorizer(func(*http.Request) error { return nil }), lockz.WithOperator(func(*http.Request) string { panic("no name") }))
}

// A lock that is free by now nobody has lost: the page says so, and nothing is logged.
func TestRelease_OfWhatIsFreeByNow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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

// A proxy that rewrites Host, such as nginx with its defaults, leaves the browser's Origin as the only
// sign of where the page was shown, and a browser sends no Sec-Fetch-Site over plain HTTP. A button
// of the page works there, for the browser that it was shown to.
func TestRelease_BehindAProxyThatRewritesHost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bed) {
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
			"another site, without the cookie":  press(ticket, nil, "Origin", "http://evil.example"),
			"the cookie of another browser":     press(ticket, stranger, "Origin", "http://ops.example"),
			"a sibling site with the cookie":    press(ticket, cookies, "Origin", "http://evil.ops.example", "Sec-Fetch-Site", "same-site"),
			"another site with the cookie":      press(ticket, cookies, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"),
			"the cookie, with no ticket for it": press("x", cookies, "Origin", "http://ops.example"),
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

// handlerTransport is a backend without a network.
type handlerTransport struct{ http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	return w.Result(), nil
}
