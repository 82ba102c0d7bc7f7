package lockz

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
)

// frame is what a template gets: the snapshot and what is around it.
type frame struct {
	*pageState

	Process string     // names this process: later another one may answer here
	Keys    []*waitRow // the waiters by key
	KeysAll int        // how many there are

	Fleet   bool   // there is a view of all locks
	Notice  string // what a button has done
	Search  string
	Sort    string
	RawKeys bool
	query   url.Values

	Buttons []*button // of the holds, if the reader may release; nil: a hold has none
}

func frameOf(w http.ResponseWriter, r *http.Request, v *view) frame {
	p, q := v.page, r.URL.Query()
	f := frame{
		pageState: &v.pageState, Process: strconv.Itoa(v.PID) + "-" + strconv.FormatInt(p.started.UnixNano(), 36),
		Keys: v.keys[:min(v.rows, len(v.keys))], KeysAll: len(v.keys),
		Fleet: p.cfg.fleet, Notice: noticeOf(q.Get("notice")), Search: q.Get("q"), Sort: v.sort, RawKeys: p.cfg.rawKeys, query: q,
	}
	if p.allows(r) {
		f.Buttons = v.buttons(cookieOf(w, r))
	}
	return f
}

// Down reports whether a Redis does not answer.
func (f frame) Down() bool {
	return slices.ContainsFunc(f.Clients, func(c clientRow) bool { return c.Error != "" })
}

// column is the head of a column that rows can be sorted by.
type column struct {
	Title, Link string
	Order       string // aria-sort, where they are sorted by it
}

// Column returns the head of a column. An empty word stands for the order of a query without sort.
func (f frame) Column(title, word, order string) column {
	q := url.Values{}
	for _, name := range []string{"q", "rows"} {
		if text := f.query.Get(name); text != "" {
			q.Set(name, text)
		}
	}
	if word != "" {
		q.Set("sort", word)
	}
	if word != f.Sort {
		order = ""
	}
	return column{title, "?" + q.Encode(), order}
}

// noticeOf is a sentence for a word of the query, which anybody can write.
func noticeOf(word string) string {
	switch word {
	case noticeReleased:
		return "The lock was released. A holder in another process may go on working without it: it finds out at its next renewal, with a fixed lease when it releases."
	case noticeOthers:
		return "The lock was taken from the holders that were shown. Other holders still have it."
	case noticeFree:
		return "The lock was free already."
	default:
		return ""
	}
}

// What the page says after a button was pressed.
const (
	noticeReleased = "released"
	noticeOthers   = "others"
	noticeFree     = "free"
)

// eventList is a list of events for a template.
type eventList struct {
	ID      string
	Events  []eventRow
	Total   int64
	Lasted  string // what the duration is
	Who     string // what the holder is
	Search  string
	RawKeys bool
}

// IncidentList is that of the incidents.
func (f frame) IncidentList() eventList {
	return eventList{"incidents-c", latest(f.Incidents), f.IncidentsTotal, "Held for", "Holder", f.Search, f.RawKeys}
}

// RefusalList is that of the refusals.
func (f frame) RefusalList() eventList {
	return eventList{"refusals-c", latest(f.Refusals), f.RefusalsTotal, "Waited", "Blocked by", f.Search, f.RawKeys}
}

// latest are as many of each kind as the page shows.
func latest(list []eventRow) (shown []eventRow) {
	seen := map[string]int{}
	for i := range list {
		if seen[list[i].What]++; seen[list[i].What] <= htmlEvents {
			shown = append(shown, list[i])
		}
	}
	return shown
}

// Most is how often a key was acquired at most.
func (k hotRow) Most() int64 { return k.Count + k.Error }

//go:embed assets
var assets embed.FS

func (p *Page) parsePages() (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"ago": ago, "count": count, "inc": func(i int) int { return i + 1 }, "dec": func(i int) int { return i - 1 },
		"holder": p.shortHolder, "traceURL": p.traceURL, "ruleURL": p.ruleURL, "id": rowID,
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}

// shortHolder cuts the id of a client of this process off a holder field: the page shows the id at its top.
func (p *Page) shortHolder(field string) string {
	clients := p.open()
	for i, c := range clients {
		number, own := strings.CutPrefix(field, c.ID()+":")
		switch {
		case own && len(clients) == 1:
			return ":" + number
		case own:
			return fmt.Sprintf("client %d:%s", i+1, number)
		}
	}
	return field
}

// traceURL returns the link to a trace. It returns "" without [WithTraceURL].
func (p *Page) traceURL(id string) string {
	return strings.ReplaceAll(p.cfg.traceURL, traceMark, id)
}

// ruleURL returns the link to the metrics of a rule. It returns "" without [WithDashboardURL].
func (p *Page) ruleURL(name string) string {
	return strings.ReplaceAll(p.cfg.rulesURL, ruleMark, url.QueryEscape(name))
}

// rowID makes the id of a row, by which the page finds it again when it is renewed.
func rowID(parts ...any) string { return "r" + core.KeyHash(fmt.Sprintln(parts...)) }

// asset answers with the style sheet or the script.
func (p *Page) asset(w http.ResponseWriter, r *http.Request, name string) {
	switch name {
	case "page.css":
		http.ServeFileFS(w, r, assets, "assets/page.css")
	case "page.js":
		http.ServeFileFS(w, r, assets, "assets/page.js")
	default:
		p.tell(w, r, http.StatusNotFound, "Not found", "The page has no such part.")
	}
}

// maxName is how many bytes of a key or a name are shown.
const maxName = 120

// count is so many of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printable is s for readers: what does not print, turns the direction of writing or piles up
// is escaped as in Go, and what is longer than limit bytes is cut, with the length behind it.
func printable(s string, limit int) string {
	var out strings.Builder
	marks := 0
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		text := rest[:size]
		switch {
		case r == utf8.RuneError && size == 1:
			text = fmt.Sprintf(`\x%02x`, rest[0])
		case !unicode.IsPrint(r) || marks > 2:
			text = escaped(r)
		}
		if out.Len()+len(text) > limit {
			return out.String() + fmt.Sprintf("… (%d bytes)", len(s))
		}
		out.WriteString(text)
		rest = rest[size:]
	}
	return out.String()
}

// escaped is a rune as Go writes those that do not print.
func escaped(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// ago is a number of seconds for readers.
func ago(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}
