package lockz

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// frame is what a template gets: the snapshot and what is around it.
type frame struct {
	*Snapshot

	Process string     // names this process: later another one may answer here
	Keys    []*waitRow // the waiters by key
	KeysAll int        // how many there are

	Fleet   bool   // there is a view of all locks
	Notice  string // what a button has done
	Every   int    // reload without a script after so many seconds; 0: never
	Search  string
	Sort    string
	RawKeys bool
	query   url.Values

	Buttons []*button // of the holds, if the reader may release; nil: a hold has none
}

func frameOf(w http.ResponseWriter, r *http.Request, v *view) frame {
	p, q := v.page, r.URL.Query()
	every, err := strconv.Atoi(q.Get("every"))
	if err != nil || every < 2 || every > 3600 {
		every = 0
	}
	f := frame{
		Snapshot: &v.Snapshot, Process: strconv.Itoa(v.PID) + "-" + strconv.FormatInt(p.started.UnixNano(), 36),
		Keys: v.keys[:min(v.rows, len(v.keys))], KeysAll: len(v.keys),
		Fleet: p.cfg.fleet, Notice: noticeOf(q.Get("notice")), Every: every, Search: q.Get("q"), Sort: v.sort, RawKeys: p.cfg.rawKeys, query: q,
	}
	if p.allows(r) {
		f.Buttons = v.buttons(cookieOf(w, r))
	}
	return f
}

// Down reports whether a Redis does not answer.
func (f frame) Down() bool {
	return slices.ContainsFunc(f.Clients, func(c Client) bool { return c.Error != "" })
}

// column is the head of a column that rows can be sorted by.
type column struct {
	Title, Link string
	Order       string // aria-sort, where they are sorted by it
}

// Column returns the head of a column. An empty word stands for the order of a query without sort.
func (f frame) Column(title, word, order string) column {
	q := url.Values{}
	for _, name := range []string{"q", "rows", "every"} {
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
	Events  []Event
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
func latest(list []Event) (shown []Event) {
	seen := map[string]int{}
	for i := range list {
		if seen[list[i].What]++; seen[list[i].What] <= htmlEvents {
			shown = append(shown, list[i])
		}
	}
	return shown
}

// Most is how often a key was acquired at most.
func (k HotKey) Most() int64 { return k.Count + k.Error }
