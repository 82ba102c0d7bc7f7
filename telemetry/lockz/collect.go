package lockz

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// listing says which rows are listed: those with a text in what is shown of them, in some order.
type listing struct {
	rows   int
	search string // in lower case
	sort   string // a column; empty: the oldest first
}

// has reports whether the texts of a row have what is searched for. They are what is shown: a key
// that is hidden is not among them.
func (l *listing) has(texts ...string) bool {
	return l.search == "" || slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(text), l.search)
	})
}

func (l *listing) hasLock(shown *lockRow, texts ...string) bool {
	return l.has(append(texts, shown.Key, shown.KeyHash, shown.Rule, shown.Kind)...)
}

func (l *listing) hasWaiter(shown *waiterRow) bool {
	return l.hasLock(&shown.lockRow, shown.BlockedBy.Holder, shown.BlockedBy.Rule, shown.TraceID)
}

// view collects a snapshot.
type view struct {
	pageState
	listing

	page    *Page
	now     time.Time
	open    []*core.Client  // the client behind each of Clients
	in      map[*waiter]int // the deadlock that a waiter is in
	held    []*hold         // the hold behind each of Holds
	waiting map[*hold]int   // how many callers wait for a hold of several keys
	keys    []*waitRow      // the waiters by key, for the page
}

// collect collects what the page shows. Locks go on during that time: the parts may be some milliseconds
// apart. Redis is not asked.
func (p *Page) collect(l listing) *view {
	v := &view{page: p, now: time.Now(), listing: l, in: make(map[*waiter]int), waiting: make(map[*hold]int)}
	v.Time, v.Since, v.Service, v.Host, v.PID = v.now, p.started, printable(p.cfg.service, maxName), printable(p.host, maxName), os.Getpid()
	v.addClients()
	v.addDeadlocks()
	v.addLines(p.table.snapshot())
	v.Lost, v.LastLost = p.lost.Load(), moment(p.lostAt.Load())
	v.addHotKeys()
	v.Refusals, v.RefusalsTotal = v.events(&p.refusals)
	v.Incidents, v.IncidentsTotal = v.events(&p.incidents)
	return v
}

func (v *view) addClients() {
	v.Clients = []clientRow{}
	v.open = v.page.open()
	for _, c := range v.open {
		s := c.Stats()
		v.Clients = append(v.Clients, clientRow{ID: c.ID(), Redis: printable(c.Address(), 2*maxName), Holds: s.Holds, Waiters: s.Waiters, OldestWait: seconds(s.OldestWait)})
	}
}

// key is how a key may be shown: raw, if at all, and hashed.
func (p *Page) key(key string) (raw, hash string) {
	if p.cfg.rawKeys {
		raw = printable(key, maxName)
	}
	return raw, core.KeyHash(key)
}

// sortKey is what keys are sorted by: the order shows nothing of keys that are hidden.
func (p *Page) sortKey(key string) string {
	if p.cfg.rawKeys {
		return key
	}
	return core.KeyHash(key)
}

func (v *view) lock(l lock) lockRow {
	raw, hash := v.page.key(l.key)
	return lockRow{Rule: printable(l.rule.name, maxName), Kind: string(l.rule.kind), Key: raw, KeyHash: hash, Keys: l.keys}
}

// locks are those of some holds, re-entries not.
func (v *view) locks(holds []*hold) []lockRow {
	list := []lockRow{}
	for _, h := range holds {
		if !h.reentrant {
			list = append(list, v.lock(h.lock))
		}
	}
	return list
}

func (v *view) addDeadlocks() {
	v.Deadlocks, v.PastDeadlocks = []deadlockRow{}, []deadlockRow{}
	list, total := v.page.cycles.latest()
	v.DeadlocksTotal = total
	for _, kept := range list {
		c := kept.value
		d := deadlockRow{Number: int(kept.number), Found: c.found, Lasts: c.lasts()}
		for _, s := range c.steps {
			d.Callers = append(d.Callers, deadlockCaller{
				WaitsFor: v.lock(s.waiter.lock), Holder: printable(s.by.field, maxName),
				Holds: v.locks(s.waiter.carries), Since: s.waiter.start, TraceID: traceID(s.waiter.trace),
			})
		}
		if !d.Lasts {
			v.PastDeadlocks = append(v.PastDeadlocks, d)
			continue
		}
		v.Deadlocks = append(v.Deadlocks, d)
		for _, s := range c.steps {
			v.in[s.waiter] = d.Number
		}
	}
}

// place is a waiter and where it stands.
type place struct {
	*waiter

	line     *line
	position int
}

// heldLine is a hold of a line, with its re-entries.
type heldLine struct {
	*hold

	line      *line
	reentries int
}

// addLines lists the oldest holds and waiters.
func (v *view) addLines(lines []line) {
	var holds []heldLine
	var places []place
	for i := range lines {
		l := &lines[i]
		l.order()
		holds = append(holds, l.held()...)
		for _, h := range l.holds {
			if h.keys > 1 {
				v.waiting[h] += len(l.waiters)
			}
		}
		for n, w := range l.waiters {
			places = append(places, place{w, l, n + 1})
		}
	}
	slices.SortFunc(holds, func(a, b heldLine) int {
		return cmp.Or(v.compare(a, b), a.acquired.Compare(b.acquired), cmp.Compare(a.field, b.field))
	})
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.position, b.position))
	})
	v.HoldsTotal, v.WaitersTotal = len(holds), len(places)
	v.Holds, v.Waiters = []holdRow{}, []waiterRow{}
	for _, h := range holds {
		if len(v.Holds) == v.rows {
			break
		}
		if shown := v.hold(h); v.hasLock(&shown.lockRow, shown.Holder, shown.TraceID) {
			v.Holds, v.held = append(v.Holds, shown), append(v.held, h.hold)
		}
	}
	for _, w := range places {
		if len(v.Waiters) == v.rows {
			break
		}
		if shown := v.waiter(w); v.hasWaiter(&shown) {
			v.Waiters = append(v.Waiters, shown)
		}
	}
	v.addKeys(lines)
}

// compare orders holds by the column that was asked for.
func (v *view) compare(a, b heldLine) int {
	switch v.sort {
	case "key":
		return cmp.Compare(v.page.sortKey(a.key), v.page.sortKey(b.key))
	case "rule":
		return cmp.Compare(a.rule.name, b.rule.name)
	case "lease":
		return cmp.Compare(a.leaseLeft(v.now), b.leaseLeft(v.now))
	case "waiting":
		return cmp.Compare(v.waitersOf(b), v.waitersOf(a))
	default:
		return 0
	}
}

// waitersOf is how many callers wait for a hold.
func (v *view) waitersOf(h heldLine) int {
	if h.keys > 1 {
		return v.waiting[h.hold]
	}
	return len(h.line.waiters)
}

// order puts the waiters in the order in which they came: who found out first that it has to
// wait need not be the one who came first, who asks Redis meanwhile, and knows for the others
// who is in the way.
func (l *line) order() {
	slices.SortStableFunc(l.waiters, func(a, b *waiter) int { return a.start.Compare(b.start) })
	for _, w := range l.waiters {
		l.blockedBy = cmp.Or(l.blockedBy, w.blockedBy)
	}
}

// held are the holds of a line, one for each holder field. A hold of several keys is in the line of the
// first one. If the lock was passed on, the holds before may not have ended yet for the page.
func (l *line) held() []heldLine {
	var list []heldLine
	for _, h := range l.holds {
		if h.key != l.key {
			continue
		}
		at := slices.IndexFunc(list, func(other heldLine) bool { return other.field == h.field })
		switch {
		case at < 0:
			list = append(list, heldLine{hold: h, line: l})
		case h.outer(list[at].hold) && h.acquired.After(list[at].acquired):
			list[at] = heldLine{hold: h, line: l}
		case h.outer(list[at].hold):
			list[at].hold = h
			list[at].reentries++
		default:
			list[at].reentries++
		}
	}
	return list
}

func (v *view) hold(h heldLine) holdRow {
	return holdRow{
		lockRow: v.lock(h.lock), Holder: printable(h.field, maxName),
		Since: h.acquired, Held: seconds(v.now.Sub(h.acquired)),
		LeaseLeft: seconds(h.leaseLeft(v.now)), Watchdog: h.watchdog, Reentries: h.reentries,
		Token: h.token, Lost: h.lost(), LostAt: moment(h.lostAt.Load()), Waiters: v.waitersOf(h),
		TraceID: traceID(h.trace),
	}
}

func (v *view) waiter(w place) waiterRow {
	return waiterRow{
		lockRow: v.lock(w.lock), Since: w.start, Waited: seconds(v.now.Sub(w.start)),
		Position: w.position, BlockedBy: v.blocker(w), Holds: v.locks(w.carries),
		Deadlock: v.in[w.waiter], TraceID: traceID(w.trace),
	}
}

// blocker returns the oldest hold of this process that w waits for. If there is none, it returns the
// holder that had the lock when w came.
func (v *view) blocker(w place) blocker {
	holds := w.line.holds
	if w.keys > 1 {
		holds = v.page.graph.blockers(w.waiter)
	}
	for _, h := range holds {
		if w.waitsFor(h) && !h.lost() {
			return blocker{
				Holder: printable(h.field, maxName), Here: true, Ours: true,
				Rule: printable(h.rule.name, maxName), Held: seconds(v.now.Sub(h.acquired)),
			}
		}
	}
	field := cmp.Or(w.blockedBy, w.line.blockedBy)
	return blocker{Holder: printable(field, maxName), Ours: v.page.clientOf(clientID(field)) != nil}
}

func (v *view) addHotKeys() {
	v.HotKeys = []hotRow{}
	top, lost := v.page.hot.top(hotShown)
	for _, k := range top {
		raw, hash := v.page.key(k.key)
		if !v.has(raw, hash) {
			continue
		}
		v.HotKeys = append(v.HotKeys, hotRow{
			Key: raw, KeyHash: hash, Count: k.count, Error: lost, Waits: k.contended, Waited: seconds(k.waited),
		})
	}
}

func (v *view) events(h *history[event]) (list []eventRow, total int64) {
	kept, total := h.latest()
	list = make([]eventRow, 0, len(kept))
	for _, e := range kept {
		if shown := v.event(e.number, e.value); v.has(shown.What, shown.Rule, shown.Kind, shown.Key, shown.KeyHash, shown.Holder, shown.Error, shown.TraceID) {
			list = append(list, shown)
		}
	}
	return list, total
}

func (v *view) event(number int64, e event) eventRow {
	shown := eventRow{
		Number: number, Time: e.at, What: printable(e.what, maxName), Rule: printable(e.rule.name, maxName), Kind: string(e.rule.kind),
		Holder: printable(e.holder, maxName), Lasted: seconds(e.lasted), TraceID: traceID(e.trace),
	}
	if e.key != "" {
		shown.Key, shown.KeyHash = v.page.key(e.key)
	}
	switch {
	case e.err == nil, e.what == string(core.OutcomeBusy), e.what == string(core.OutcomeOverload): // the columns say it all
	case v.page.cfg.rawKeys:
		shown.Error = printable(e.err.Error(), 2*maxName)
	default:
		shown.Error = printable(core.ErrorText(e.err), 2*maxName)
	}
	return shown
}

// moment is a time in Unix nanoseconds; 0 is none.
func moment(nano int64) time.Time {
	if nano == 0 {
		return time.Time{}
	}
	return time.Unix(0, nano)
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// traceID is empty without a trace.
func traceID(id trace.TraceID) string {
	if !id.IsValid() {
		return ""
	}
	return id.String()
}

// waitRow is a row of the page: the waiters of one key, or one of them that is in a deadlock.
type waitRow struct {
	waiterRow // the one that waits longest

	ID      string // of the row
	Callers int
	Rules   map[rule]bool // of the callers
	Holding int           // how many of them hold something
}

// addKeys lists the waiters by key. However many wait for one key, they are one row.
func (v *view) addKeys(lines []line) {
	for i := range lines {
		l := &lines[i]
		var shared *waitRow
		for n, w := range l.waiters {
			row := shared
			if shared == nil || v.in[w] != 0 {
				row = &waitRow{waiterRow: v.waiter(place{w, l, n + 1}), Rules: map[rule]bool{}}
				row.ID = rowID("wait", row.KeyHash, l.client)
				if v.in[w] == 0 {
					shared = row
				} else {
					row.ID = rowID(row.ID, row.Since.UnixNano(), row.Deadlock)
				}
				if v.hasWaiter(&row.waiterRow) {
					v.keys = append(v.keys, row)
				}
			}
			row.Callers++
			row.Rules[w.rule] = true
			row.Holding += min(len(w.carries), 1)
		}
	}
	slices.SortStableFunc(v.keys, func(a, b *waitRow) int {
		var sorted int
		switch v.sort {
		case "key":
			sorted = cmp.Compare(cmp.Or(a.Key, a.KeyHash), cmp.Or(b.Key, b.KeyHash))
		case "rule":
			sorted = cmp.Compare(a.Rule, b.Rule)
		case "waiting":
			sorted = cmp.Compare(b.Callers, a.Callers)
		}
		return cmp.Or(sorted, a.Since.Compare(b.Since), cmp.Compare(a.KeyHash, b.KeyHash))
	})
}
