package lockz

import (
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// htmlEvents is the number of events of each outcome or incident that the page lists.
const htmlEvents = 20

// processFrame is the data of the template "process": a snapshot and the parts of the page around
// it.
type processFrame struct {
	*snapshot

	Process string     // identifies this process, because another one may answer at the same address later
	Keys    []*waitRow // the waiters by key
	KeysAll int        // the number of rows of Keys without a limit

	Fleet   bool   // the fleet view is on
	Notice  string // the result of a pressed button
	Search  string
	Sort    string
	RawKeys bool
	query   url.Values

	Buttons []*button // one for each hold, if the reader may release locks; nil: the hold has none
}

func newProcessFrame(s *snapshot, cfg *config, l listing, q url.Values) *processFrame {
	return &processFrame{
		snapshot: s, Process: strconv.Itoa(s.PID) + "-" + strconv.FormatInt(s.Since.UnixNano(), 36),
		Keys: s.waitersByKey[:min(l.rows, len(s.waitersByKey))], KeysAll: len(s.waitersByKey),
		Fleet: cfg.fleet, Notice: noticeOf(q.Get("notice")), Search: q.Get("q"), Sort: l.sort, RawKeys: cfg.rawKeys, query: q,
	}
}

// Down reports whether a Redis does not answer.
func (f *processFrame) Down() bool {
	return slices.ContainsFunc(f.Clients, func(c clientRow) bool { return c.Error != "" })
}

// column is the head of a column that rows can be sorted by.
type column struct {
	Title, Link string
	Order       string // aria-sort, if the rows are sorted by this column
}

// Column returns the head of a column. An empty word stands for the order of a query without sort.
func (f *processFrame) Column(title, word, order string) column {
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

// eventList is the data of the template "events".
type eventList struct {
	ID      string
	Events  []eventRow
	Total   int64
	Lasted  string // title of the duration
	Who     string // title of the holder
	Search  string
	RawKeys bool
}

// IncidentList returns the list of incidents.
func (f *processFrame) IncidentList() eventList {
	return eventList{"incidents-c", lastOfEach(f.Incidents), f.IncidentsTotal, "Held for", "Holder", f.Search, f.RawKeys}
}

// RefusalList returns the list of refusals.
func (f *processFrame) RefusalList() eventList {
	return eventList{"refusals-c", lastOfEach(f.Refusals), f.RefusalsTotal, "Waited", "Blocked by", f.Search, f.RawKeys}
}

// lastOfEach returns the last htmlEvents of each outcome or incident.
func lastOfEach(list []eventRow) (shown []eventRow) {
	seen := map[string]int{}
	for i := range list {
		if seen[list[i].What]++; seen[list[i].What] <= htmlEvents {
			shown = append(shown, list[i])
		}
	}
	return shown
}

// Most returns the upper bound of the count.
func (k hotRow) Most() int64 { return k.Count + k.Error }

// fleetFrame is the data of the template "fleet".
type fleetFrame struct {
	*fleetState

	Redis   string
	Service string
	Host    string
	First   bool   // this is the first part
	Next    string // query of the next part
	Prefix  string
	Search  string
	Notice  string
	RawKeys bool
	Buttons []*button // one for each lock, if the reader may release locks; nil: the lock has none
}

func newFleetFrame(list *fleetState, redis string, process *identity, cfg *config, q url.Values) *fleetFrame {
	return &fleetFrame{
		fleetState: list, Next: nextQuery(q, list.Client, list.Cursor), Prefix: q.Get("prefix"), Search: q.Get("q"), Notice: noticeOf(q.Get("notice")),
		RawKeys: cfg.rawKeys, First: q.Get("cursor") == "", Redis: printable(redis, 2*maxName), Service: process.service, Host: process.host,
	}
}

//go:embed assets
var assets embed.FS

// parseTemplates parses the templates process, fleet and message. They show a client in a holder field by
// its number.
func parseTemplates(c *clients, cfg *config) (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"ago": ago, "count": count, "inc": func(i int) int { return i + 1 }, "dec": func(i int) int { return i - 1 },
		"holder": c.shorten, "id": rowID,
		"traceURL": func(id string) string { return strings.ReplaceAll(cfg.traceURL, traceMark, id) },
		"ruleURL":  func(name string) string { return strings.ReplaceAll(cfg.rulesURL, ruleMark, url.QueryEscape(name)) },
	}).ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}
	return t, nil
}
