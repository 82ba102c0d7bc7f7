package lockz

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// The page lists htmlRows holds and waiters, and JSON jsonRows, unless the query says rows, which is maxRows at
// most. The page lists the last htmlEvents of each outcome of refusals, and of each kind of incidents.
const (
	htmlRows   = 100
	jsonRows   = 1_000
	maxRows    = 10_000
	htmlEvents = 20
)

// ServeHTTP answers with the page, with its parts, with JSON, and to a press of a button. It
// has one path; the query says what is wanted, so that it works wherever it is mounted.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch {
	case !here(r):
		p.tell(w, r, http.StatusNotFound, "Not found", "There is nothing here.")
	case r.Method == http.MethodPost:
		p.release(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		p.tell(w, r, http.StatusMethodNotAllowed, "Method not allowed", "The page answers GET, HEAD and POST.")
	case r.URL.Query().Has("asset"):
		p.asset(w, r, r.URL.Query().Get("asset"))
	case r.URL.Query().Has("fleet"):
		p.serveFleet(w, r)
	default:
		p.serveProcess(w, r)
	}
}

// protect has browsers load nothing from elsewhere, run no script but that of the page, keep
// nothing and put it into no frame. Origin has to come with a form, so a referrer may too.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
		"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Vary", "Accept")
}

// here reports whether the page itself is asked for, not something below it: the path is that
// of the mux pattern, or what http.StripPrefix has left of it. Other routers have matched.
func here(r *http.Request) bool {
	if r.Pattern == "" || strings.Contains(r.Pattern, "{") || r.URL.Path == "" || r.URL.Path == "/" {
		return true
	}
	path := r.Pattern[strings.IndexByte(r.Pattern, '/'):]
	return r.URL.Path == path
}

// wantsJSON reports whether a program asks.
func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// rowsOf is how many holds and waiters a request wants.
func rowsOf(q url.Values, usual int) int {
	n, err := strconv.Atoi(q.Get("rows"))
	if err != nil || n < 1 {
		return usual
	}
	return min(n, maxRows)
}

func (p *Page) serveProcess(w http.ResponseWriter, r *http.Request) {
	q, usual := r.URL.Query(), htmlRows
	if wantsJSON(r) {
		usual = jsonRows
	}
	l := listing{rows: rowsOf(q, usual), search: strings.ToLower(q.Get("q"))}
	if word := q.Get("sort"); slices.Contains([]string{"key", "rule", "lease", "waiting"}, word) {
		l.sort = word
	}
	v := p.collect(l)
	v.askRedis(r.Context())
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, "application/json; charset=utf-8", v.pageState)
		return
	}
	p.render(w, http.StatusOK, "process", frameOf(w, r, v))
}

// askTimeout is how long the page waits for an answer of Redis.
const askTimeout = time.Second

// askRedis asks the Redis of each client whether it answers.
func (v *view) askRedis(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i, client := range v.open {
		all.Go(func() {
			if err := client.Ready(ctx); err != nil {
				v.Clients[i].Error = printable(core.ErrorText(err), 2*maxName)
			}
		})
	}
	all.Wait()
}

func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "the answer is no JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
}

// render writes a template. It is made before anything is sent.
func (p *Page) render(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := p.pages.ExecuteTemplate(&body, name, data); err != nil {
		p.cfg.logger.Error("lockz: a template fails", "template", name, "error", err)
		http.Error(w, "the page cannot be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) //nolint:errcheck // the client is gone
}

// tell answers with a sentence instead of the page, a program as RFC 9457 has it.
func (p *Page) tell(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	m := message{Title: title, Status: status, Text: text}
	if wantsJSON(r) {
		writeJSON(w, status, "application/problem+json", m)
		return
	}
	p.render(w, status, "message", m)
}

type message struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Text   string `json:"detail"`
}
