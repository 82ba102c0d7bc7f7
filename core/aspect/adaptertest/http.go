package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// client calls an HTTP server.
type client struct {
	tb   testing.TB
	url  string
	http *http.Client
}

// outerHeaders returns headers of a middleware around the guard that describe the expected answer of the handler or
// control how long caches keep it.
func outerHeaders() http.Header {
	return http.Header{
		"Accept-Ranges": {"bytes"}, "Cache-Control": {"public, max-age=86400"}, "Cdn-Cache-Control": {"max-age=86400"},
		"Content-Disposition": {"attachment"}, "Content-Encoding": {"identity"}, "Content-Language": {"de"}, "Content-Range": {"bytes 0-3/4"},
		"Content-Type": {"text/csv"}, "Etag": {`"1"`}, "Expires": {"Fri, 31 Dec 2027 00:00:00 GMT"},
		"Last-Modified": {"Fri, 31 Dec 2021 00:00:00 GMT"}, "Surrogate-Control": {"max-age=86400"},
	}
}

// keptHeaders returns headers of a middleware around the guard that every answer keeps, including answers of the guard.
func keptHeaders() http.Header {
	return http.Header{
		"Access-Control-Allow-Origin": {"https://shop.example"}, "Content-Security-Policy": {"default-src 'none'"},
		"Set-Cookie": {"session=1"}, "Vary": {"Origin"}, "X-Request-Id": {"7"},
	}
}

// Headers returns the headers that a middleware around the guard sets before [CallHTTP] calls the server. An answer of the
// guard keeps some of them and removes the others.
func Headers() http.Header {
	h := outerHeaders()
	maps.Copy(h, keptHeaders())
	return h
}

// ServeHTTP serves a handler until the test ends. It puts a recovery and a middleware that sets headers around the
// handler. It returns s with a Call that sends POST /orders/<id>/pay. If the call has a tenant, the request has the header
// X-Tenant. The handler has to answer with the text that Pay returned.
func ServeHTTP(tb testing.TB, handler http.Handler, s Server) Server {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), Headers())
		defer func() {
			if v := recover(); v != nil {
				http.Error(w, fmt.Sprint(v), http.StatusInternalServerError)
			}
		}()
		handler.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	h := client{tb, server.URL, server.Client()}
	s.post = h.post
	return h.calling(s)
}

// CallHTTP returns s with the Call of [ServeHTTP], for a server that is not built on net/http. The server listens at url,
// such as "http://127.0.0.1:8080". Around the guard, it needs a middleware that sets [Headers] and a recovery that answers
// with the value of the panic. [Run] then does not test bodies that arrive late, because such a server reads a body before it
// calls handlers.
func CallHTTP(tb testing.TB, url string, s Server) Server {
	tb.Helper()
	h := client{tb, url, &http.Client{Transport: &http.Transport{}}}
	tb.Cleanup(h.http.CloseIdleConnections)
	return h.calling(s)
}

// calling returns s with a Call that sends a request without a body.
func (h client) calling(s Server) Server {
	s.Call = func(ctx context.Context, c Call) Answer { return h.post(ctx, c, http.NoBody) }
	return s
}

func (h client) post(ctx context.Context, c Call, body io.Reader) Answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/orders/"+c.ID+"/pay", body)
	if err != nil {
		return Answer{All: err.Error()}
	}
	if c.Tenant != "" {
		r.Header.Set("X-Tenant", c.Tenant)
	}
	response, err := h.http.Do(r)
	if err != nil { // the caller has left
		return Answer{Code: http.StatusInternalServerError}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{Code: http.StatusInternalServerError}
	}
	a := httpAnswer(response, string(text))
	h.wantHeaders(response.Header, &a)
	if got := fmt.Sprint(response.StatusCode, " ", response.Header.Get("Content-Type")); !strings.HasPrefix(got, form(&a)) {
		h.tb.Errorf("the answer is a %s, want a %s:\n%s", got, form(&a), a.All)
	}
	return a
}

// wantHeaders fails the test unless the answer has the kept headers. An answer of the guard must also forbid caching and
// must not have the outer headers.
func (h client) wantHeaders(got http.Header, a *Answer) {
	h.tb.Helper()
	for name, want := range keptHeaders() {
		if !slices.Equal(got[name], want) {
			h.tb.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, replied := replyOf(a); !replied && a.Cause == "" {
		return
	}
	if got := got.Get("Cache-Control"); got != "no-store" {
		h.tb.Errorf("an answer of the guard has Cache-Control %q:\n%s", got, a.All)
	}
	for name, foreign := range outerHeaders() {
		if slices.Equal(got[name], foreign) {
			h.tb.Errorf("an answer of the guard has %s %q:\n%s", name, got[name], a.All)
		}
	}
}

// replyOf returns the reply of the strategy that an answer shows.
func replyOf(a *Answer) (failpolicy.Reply, bool) {
	for _, s := range failpolicy.Strategies() {
		if r, ok := s.Reply(); ok && r.Mark == a.Lock {
			return r, true
		}
	}
	return failpolicy.Reply{}, false
}

// form returns the status and the Content-Type that an answer must have.
func form(a *Answer) string {
	reply, replied := replyOf(a)
	switch {
	case replied && reply.Body:
		return fmt.Sprint(reply.HTTP, " application/json")
	case replied:
		return fmt.Sprint(reply.HTTP, " ")
	case a.Cause != "":
		return fmt.Sprint(a.Code, " application/problem+json")
	default:
		return fmt.Sprint(a.Code, " ")
	}
}

// httpAnswer reads an answer as a client would.
func httpAnswer(response *http.Response, body string) Answer {
	a := Answer{
		OK: response.StatusCode < http.StatusBadRequest, Code: response.StatusCode,
		Lock: response.Header.Get("X-Lock-Status"), Token: response.Header.Get("X-Lock-Token"),
	}
	var all strings.Builder
	_ = response.Header.Write(&all)
	a.All = all.String() + body
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		a.Retry = time.Duration(seconds) * time.Second
	}
	var problem struct {
		Type string `json:"type"`
	}
	reply, _ := replyOf(&a)
	switch {
	case a.OK && !(reply.Body && body == "null"):
		a.Text = body
	case !a.OK && json.Unmarshal([]byte(body), &problem) == nil:
		a.Cause = problem.Type
	}
	return a
}
