package lockz

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// maxRows is the largest number that a query may request: of rows in each list, and of keys in a part of the
// fleet list.
const maxRows = 10_000

// listing selects and orders the rows of a snapshot.
type listing struct {
	rows   int    // the number of holds, and of waiters, that are listed
	search string // a text in lower case that each row must show; empty: every row is listed
	sort   string // key, rule, lease or waiting; empty: the oldest first
}

// has reports whether one of the texts contains the search text. The texts are those that the row shows,
// so a hidden key cannot be found.
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

// identity identifies the process that the page shows.
type identity struct {
	service, host string
	pid           int
	started       time.Time
}

// collector builds a snapshot.
type collector struct {
	snapshot
	listing

	tracker *tracker
	names   keyNames
	now     time.Time
	in      map[*waiter]int // the number of the deadlock that a waiter is in
	waiting map[*hold]int   // the number of callers that wait for a hold of several keys
}

// collect returns a snapshot of the tracker. Locks are acquired and released while it works, so parts of
// the snapshot may be some milliseconds apart. It does not ask Redis.
func collect(t *tracker, process *identity, names keyNames, l listing) *snapshot {
	c := &collector{tracker: t, names: names, now: time.Now(), listing: l, in: make(map[*waiter]int), waiting: make(map[*hold]int)}
	c.Time, c.Since, c.Service, c.Host, c.PID = c.now, process.started, process.service, process.host, process.pid
	c.addClients()
	c.addDeadlocks()
	c.addLines(t.table.snapshot())
	c.Lost, c.LastLost = t.lost.Load(), moment(t.lostAt.Load())
	c.addHotKeys()
	c.Refusals, c.RefusalsTotal = c.events(&t.refusals)
	c.Incidents, c.IncidentsTotal = c.events(&t.incidents)
	return &c.snapshot
}

func (c *collector) addClients() {
	c.Clients = []clientRow{}
	for _, client := range c.tracker.clients.open() {
		s := client.Stats()
		c.Clients = append(c.Clients, clientRow{
			ID: client.ID(), Redis: printable(client.Address(), 2*maxName), Holds: s.Holds, Waiters: s.Waiters,
			OldestWait: seconds(s.OldestWait), client: client,
		})
	}
}

// askTimeout is the time for which askRedis waits for replies.
const askTimeout = time.Second

// askRedis checks concurrently whether the Redis of each client answers.
func (s *snapshot) askRedis(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i := range s.Clients {
		row := &s.Clients[i]
		all.Go(func() {
			if err := row.client.Ready(ctx); err != nil {
				row.Error = printable(core.ErrorText(err), 2*maxName)
			}
		})
	}
	all.Wait()
}

func (c *collector) lock(l *lock) lockRow {
	raw, hash := c.names.name(l.key)
	return lockRow{Rule: printable(l.rule.name, maxName), Kind: string(l.rule.kind), Key: raw, KeyHash: hash, Keys: l.keys}
}

// locks returns the locks of holds without re-entries.
func (c *collector) locks(holds []*hold) []lockRow {
	list := []lockRow{}
	for _, h := range holds {
		if !h.reentrant {
			list = append(list, c.lock(&h.lock))
		}
	}
	return list
}

func (c *collector) addDeadlocks() {
	c.Deadlocks, c.PastDeadlocks = []deadlockRow{}, []deadlockRow{}
	list, total := c.tracker.deadlocks.found.latest()
	c.DeadlocksTotal = total
	for _, kept := range list {
		ring := kept.value
		d := deadlockRow{Number: int(kept.number), Found: ring.found, Lasts: ring.lasts()}
		for _, s := range ring.steps {
			d.Callers = append(d.Callers, deadlockCaller{
				WaitsFor: c.lock(&s.waiter.lock), Holder: printable(s.by.field, maxName),
				Holds: c.locks(s.waiter.carries), Since: s.waiter.start, TraceID: traceID(s.waiter.trace),
			})
		}
		if !d.Lasts {
			c.PastDeadlocks = append(c.PastDeadlocks, d)
			continue
		}
		c.Deadlocks = append(c.Deadlocks, d)
		for _, s := range ring.steps {
			c.in[s.waiter] = d.Number
		}
	}
}

// place is a waiter with its position in a line.
type place struct {
	*waiter

	line     *line
	position int
}

// heldLine is a hold of a line and the number of its re-entries.
type heldLine struct {
	*hold

	line      *line
	reentries int
}

// addLines lists holds and waiters.
func (c *collector) addLines(lines []line) {
	var holds []heldLine
	var places []place
	for i := range lines {
		l := &lines[i]
		l.order()
		holds = append(holds, l.held()...)
		for _, h := range l.holds {
			if h.keys > 1 {
				c.waiting[h] += len(l.waiters)
			}
		}
		for n, w := range l.waiters {
			places = append(places, place{w, l, n + 1})
		}
	}
	slices.SortFunc(holds, func(a, b heldLine) int {
		return cmp.Or(c.compare(a, b), a.acquired.Compare(b.acquired), cmp.Compare(a.field, b.field))
	})
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.position, b.position))
	})
	c.HoldsTotal, c.WaitersTotal = len(holds), len(places)
	c.Holds, c.Waiters = []holdRow{}, []waiterRow{}
	for _, h := range holds {
		if len(c.Holds) == c.rows {
			break
		}
		if shown := c.hold(h); c.hasLock(&shown.lockRow, shown.Holder, shown.TraceID) {
			c.Holds = append(c.Holds, shown)
		}
	}
	for _, w := range places {
		if len(c.Waiters) == c.rows {
			break
		}
		if shown := c.waiter(w); c.hasWaiter(&shown) {
			c.Waiters = append(c.Waiters, shown)
		}
	}
	c.addKeys(lines)
}

// compare compares two holds by the column of the listing.
func (c *collector) compare(a, b heldLine) int {
	switch c.sort {
	case "key":
		return cmp.Compare(c.names.order(a.key), c.names.order(b.key))
	case "rule":
		return cmp.Compare(a.rule.name, b.rule.name)
	case "lease":
		return cmp.Compare(a.leaseLeft(c.now), b.leaseLeft(c.now))
	case "waiting":
		return cmp.Compare(c.waitersOf(b), c.waitersOf(a))
	default:
		return 0
	}
}

// waitersOf returns the number of callers that wait for a hold.
func (c *collector) waitersOf(h heldLine) int {
	if h.keys > 1 {
		return c.waiting[h.hold]
	}
	return len(h.line.waiters)
}

// order sorts the waiters by the start of their acquisitions. The table lists them in the order in which they
// found the lock taken. The first caller may not be the first there, because it asks Redis, and the callers
// that queue after it do not. Only the reply to the first caller names the holder, so order copies that holder
// to the line.
func (l *line) order() {
	slices.SortStableFunc(l.waiters, func(a, b *waiter) int { return a.start.Compare(b.start) })
	for _, w := range l.waiters {
		l.blockedBy = cmp.Or(l.blockedBy, w.blockedBy)
	}
}

// held returns the holds of a line, one for each holder field. A hold of several keys belongs to the line of
// its first key. After the lock is passed on, the end of an earlier hold may not be observed yet.
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
		case h.supersedes(list[at].hold) && h.acquired.After(list[at].acquired):
			list[at] = heldLine{hold: h, line: l}
		case h.supersedes(list[at].hold):
			list[at].hold = h
			list[at].reentries++
		default:
			list[at].reentries++
		}
	}
	return list
}

func (c *collector) hold(h heldLine) holdRow {
	return holdRow{
		lockRow: c.lock(&h.lock), Holder: printable(h.field, maxName),
		Since: h.acquired, Held: seconds(c.now.Sub(h.acquired)),
		LeaseLeft: seconds(h.leaseLeft(c.now)), Watchdog: h.watchdog, Reentries: h.reentries,
		Token: h.token, Lost: h.lost(), LostAt: moment(h.lostAt.Load()), Waiters: c.waitersOf(h),
		TraceID: traceID(h.trace), key: h.key, field: h.field,
	}
}

func (c *collector) waiter(w place) waiterRow {
	return waiterRow{
		lockRow: c.lock(&w.lock), Since: w.start, Waited: seconds(c.now.Sub(w.start)),
		Position: w.position, BlockedBy: c.blocker(w), Holds: c.locks(w.carries),
		Deadlock: c.in[w.waiter], TraceID: traceID(w.trace),
	}
}

// blocker returns the oldest hold of this process that w waits for. If none is known, it returns the holder
// that had the lock when w arrived.
func (c *collector) blocker(w place) blocker {
	holds := w.line.holds
	if w.keys > 1 {
		holds = c.tracker.graph.blockers(w.waiter)
	}
	for _, h := range holds {
		if w.waitsFor(h) && !h.lost() {
			return blocker{
				Holder: printable(h.field, maxName), Here: true, Ours: true,
				Rule: printable(h.rule.name, maxName), Held: seconds(c.now.Sub(h.acquired)),
			}
		}
	}
	field := cmp.Or(w.blockedBy, w.line.blockedBy)
	return blocker{Holder: printable(field, maxName), Ours: c.tracker.clients.find(clientID(field)) != nil}
}

func (c *collector) addHotKeys() {
	c.HotKeys = []hotRow{}
	top, lost := c.tracker.hot.top(hotShown)
	for _, k := range top {
		raw, hash := c.names.name(k.key)
		if !c.has(raw, hash) {
			continue
		}
		c.HotKeys = append(c.HotKeys, hotRow{
			Key: raw, KeyHash: hash, Count: k.count, Error: lost, Waits: k.contended, Waited: seconds(k.waited),
		})
	}
}

func (c *collector) events(h *history[event]) (list []eventRow, total int64) {
	kept, total := h.latest()
	list = make([]eventRow, 0, len(kept))
	for _, e := range kept {
		if shown := c.event(e.number, e.value); c.has(shown.What, shown.Rule, shown.Kind, shown.Key, shown.KeyHash, shown.Holder, shown.Error, shown.TraceID) {
			list = append(list, shown)
		}
	}
	return list, total
}

func (c *collector) event(number int64, e event) eventRow {
	shown := eventRow{
		Number: number, Time: e.at, What: printable(e.what, maxName), Rule: printable(e.rule.name, maxName), Kind: string(e.rule.kind),
		Holder: printable(e.holder, maxName), Lasted: seconds(e.lasted), TraceID: traceID(e.trace),
	}
	if e.key != "" {
		shown.Key, shown.KeyHash = c.names.name(e.key)
	}
	switch {
	case e.err == nil, e.what == string(core.OutcomeBusy), e.what == string(core.OutcomeOverload): // the other columns show the reason
	case c.names.raw:
		shown.Error = printable(e.err.Error(), 2*maxName)
	default:
		shown.Error = printable(core.ErrorText(e.err), 2*maxName)
	}
	return shown
}

// addKeys lists the waiters by key. All waiters of a key are one row, except those in a deadlock.
func (c *collector) addKeys(lines []line) {
	for i := range lines {
		l := &lines[i]
		var shared *waitRow
		for n, w := range l.waiters {
			row := shared
			if shared == nil || c.in[w] != 0 {
				row = &waitRow{waiterRow: c.waiter(place{w, l, n + 1}), Rules: map[rule]bool{}}
				row.ID = rowID("wait", row.KeyHash, l.client)
				if c.in[w] == 0 {
					shared = row
				} else {
					row.ID = rowID(row.ID, row.Since.UnixNano(), row.Deadlock)
				}
				if c.hasWaiter(&row.waiterRow) {
					c.waitersByKey = append(c.waitersByKey, row)
				}
			}
			row.Callers++
			row.Rules[w.rule] = true
			row.Holding += min(len(w.carries), 1)
		}
	}
	slices.SortStableFunc(c.waitersByKey, func(a, b *waitRow) int {
		var sorted int
		switch c.sort {
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
