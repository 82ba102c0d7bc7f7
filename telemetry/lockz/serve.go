package lockz

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The page lists htmlRows holds and waiters, and JSON lists jsonRows, unless the query sets rows.
const (
	htmlRows = 100
	jsonRows = 1_000
)

// ServeHTTP serves the page, its script and style sheet, JSON, and the requests of buttons. The page has a
// single path and works under any path, because the query selects the content.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	switch {
	case !isPage(r):
		p.answer(w, r, &message{"Not found", http.StatusNotFound, "There is nothing here."})
	case r.Method == http.MethodPost:
		p.serveRelease(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		p.answer(w, r, &message{"Method not allowed", http.StatusMethodNotAllowed, "The page answers GET, HEAD and POST."})
	case r.URL.Query().Has("asset"):
		p.serveAsset(w, r)
	case r.URL.Query().Has("fleet"):
		p.serveFleet(w, r)
	default:
		p.serveProcess(w, r)
	}
}

// protect sets headers with which browsers load nothing from other sites, run no script except the
// page's, store nothing, and do not show the page in a frame. The referrer policy permits the page
// itself, because the request of a form needs an Origin.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
		"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Vary", "Accept")
}

// isPage reports whether the request is for the page itself and not for something below it. The path must be
// the mux pattern or the rest that http.StripPrefix leaves. Other routers matched the path already.
func isPage(r *http.Request) bool {
	if r.Pattern == "" || strings.Contains(r.Pattern, "{") || r.URL.Path == "" || r.URL.Path == "/" {
		return true
	}
	path := r.Pattern[strings.IndexByte(r.Pattern, '/'):]
	return r.URL.Path == path
}

// wantsJSON reports whether the request asks for JSON, by the query or by the header Accept.
func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// parseListing reads rows, q and sort. Values that are not valid count as absent.
func parseListing(q url.Values, usualRows int) listing {
	l := listing{rows: usualRows, search: strings.ToLower(q.Get("q"))}
	if n, err := strconv.Atoi(q.Get("rows")); err == nil && n > 0 {
		l.rows = min(n, maxRows)
	}
	if word := q.Get("sort"); slices.Contains([]string{"key", "rule", "lease", "waiting"}, word) {
		l.sort = word
	}
	return l
}

// serveProcess serves the snapshot of this process.
func (p *Page) serveProcess(w http.ResponseWriter, r *http.Request) {
	q, rows := r.URL.Query(), htmlRows
	if wantsJSON(r) {
		rows = jsonRows
	}
	l := parseListing(q, rows)
	s := collect(p.tracker, &p.process, p.cfg.names(), l)
	s.askRedis(r.Context())
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, "application/json; charset=utf-8", s)
		return
	}
	f := newProcessFrame(s, &p.cfg, l, q)
	if p.releases.allows(r) {
		f.Buttons = p.releases.holdButtons(s.Holds, cookieOf(w, r))
	}
	p.render(w, http.StatusOK, "process", f)
}

// serveFleet serves a part of the list of all locks in Redis.
func (p *Page) serveFleet(w http.ResponseWriter, r *http.Request) {
	if !p.cfg.fleet {
		p.answer(w, r, &message{"Not found", http.StatusNotFound, "The view of all locks is not switched on (WithFleet)."})
		return
	}
	q := r.URL.Query()
	list, client, problem := p.fleet.list(r.Context(), q)
	switch {
	case problem != nil:
		p.answer(w, r, problem)
		return
	case wantsJSON(r):
		writeJSON(w, http.StatusOK, "application/json; charset=utf-8", list)
		return
	}
	f := newFleetFrame(list, client.Address(), &p.process, &p.cfg, q)
	if p.releases.allows(r) {
		f.Buttons = p.releases.fleetButtons(list, cookieOf(w, r))
	}
	p.render(w, http.StatusOK, "fleet", f)
}

// serveRelease serves a pressed button. It redirects to the view that contained the button.
func (p *Page) serveRelease(w http.ResponseWriter, r *http.Request) {
	notice, problem := p.releases.release(w, r)
	if problem != nil {
		p.answer(w, r, problem)
		return
	}
	view := "?"
	if r.URL.Query().Has("fleet") {
		view = "?fleet=1&"
	}
	w.Header().Set("Location", view+"notice="+notice) // relative, so that it works wherever the page is mounted
	w.WriteHeader(http.StatusSeeOther)
}

// serveAsset serves the style sheet or the script.
func (p *Page) serveAsset(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Query().Get("asset") {
	case "page.css":
		http.ServeFileFS(w, r, assets, "assets/page.css")
	case "page.js":
		http.ServeFileFS(w, r, assets, "assets/page.js")
	default:
		p.answer(w, r, &message{"Not found", http.StatusNotFound, "The page has no such part."})
	}
}

func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "the answer cannot be written as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) //nolint:errcheck // the client is gone
}

// render executes a template completely before it writes anything.
func (p *Page) render(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := p.templates.ExecuteTemplate(&body, name, data); err != nil {
		p.cfg.logger.Error("lockz: a template fails", "template", name, "error", err)
		http.Error(w, "the page cannot be rendered; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) //nolint:errcheck // the client is gone
}

// answer writes a message as a page, or as a problem document (RFC 9457) if the request asks for JSON.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, m *message) {
	if wantsJSON(r) {
		writeJSON(w, m.Status, "application/problem+json", m)
		return
	}
	p.render(w, m.Status, "message", m)
}
