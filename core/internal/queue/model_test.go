package queue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// world applies random events of callers, releases and strangers to the queues and to a simple model of them.
// A difference between the two fails the test.
//
// The model ignores turns: at any time, the queues may make the head sleep or a release free the lock. It is
// exact about the order, the holders, the kind, the waiter that is due, the waiter that a hand-off reaches,
// and the remaining queues.
type world struct {
	*queue.Queues

	t        *testing.T
	now      time.Time
	next     func(n int) int // the source of events
	n        int             // number of names
	keys     map[string]*place
	callers  []*caller // waiting
	holders  []*owner  // holders that are not released yet
	releases []*releaseSubscription
	log      []string
}

// place is the model of one key.
type place struct {
	kind    string    // the kind of lock while the key is in use
	redis   string    // field of the holder in Redis, "" if it is free
	order   []*caller // the queue
	holders []*owner
	handing int
	hidden  bool // it may have become free in Redis without a notification of this process
}

type caller struct {
	*queue.Waiter

	id    int
	key   string
	due   bool
	state string // queued, chosen, granted
	moved bool
	asks  string // state of the attempt under way: sent, or the answer of Redis: yes, no
	asked time.Time
	field string // field of the attempt
	since time.Time
}

type owner struct {
	holder

	key    string
	kind   string
	shared bool
}

// release is a release in progress. to is the caller to which it hands the lock.
type releaseSubscription struct {
	from     *owner
	to       *caller
	next     *owner
	executed bool
	mine     bool
}

func newWorld(t *testing.T, next func(n int) int) *world {
	t.Helper()
	w := &world{
		Queues: queue.New(queue.Config{PerKey: 6, InAll: 12}), t: t, next: next,
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), keys: make(map[string]*place),
	}
	for _, key := range []string{"a", "b", "c"} {
		w.keys[key] = &place{}
	}
	return w
}

func (w *world) key() string { return []string{"a", "b", "c"}[w.next(3)] }

// kind returns the kind of lock that a caller wants, usually the same one.
func (w *world) kind() string {
	if w.next(12) == 0 {
		return "other"
	}
	return "plain"
}

func (w *world) notef(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(0, len(w.log)-30):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// pick returns a random element that fits, or nil.
func pick[T any](w *world, all []*T, fits func(*T) bool) *T {
	var fitting []*T
	for _, e := range all {
		if fits(e) {
			fitting = append(fitting, e)
		}
	}
	if len(fitting) == 0 {
		return nil
	}
	return fitting[w.next(len(fitting))]
}

// event applies one random event.
func (w *world) event() {
	events := []func(){
		w.joins, w.joins, w.steps, w.steps, w.steps, w.steps, w.executes, w.executes, w.answers, w.answers,
		w.leaves, w.polls, w.startsRelease, w.startsRelease, w.releaseExecutes, w.releaseExecutes,
		w.releaseAnswers, w.releaseAnswers, w.stranger, w.stranger, w.message, w.passes, w.expires, w.loses, w.takesDirectly,
	}
	events[w.next(len(events))]()
	w.compare()
}

func (w *world) joins() {
	w.n++
	c := &caller{id: w.n, key: w.key(), state: "queued", since: w.now.Add(-time.Duration(w.next(3)) * ms)}
	c.Waiter = &queue.Waiter{Wish: queue.Wish{Kind: w.kind(), Since: c.since, Several: w.next(5) == 0, Admitted: w.next(9) == 0}}
	c.Shared = !c.Several && w.next(6) == 0
	c.Together, c.Announces = c.Shared && w.next(2) == 0, !c.Shared && w.next(2) == 0
	if w.next(4) == 0 {
		c.Until = w.now.Add(time.Duration(w.next(50)) * ms)
	}
	p := w.keys[c.key]
	full := (len(p.order) >= 6 || len(w.callers) >= 12) && !c.Admitted
	err := w.Join(c.key, c.Waiter, w.now)
	w.notef("%d joins %s as %s: %v", c.id, c.key, c.Kind, err)
	if (err != nil) != (full || p.isOther(c.Kind)) || isKindError(err) != p.isOther(c.Kind) {
		w.failf("join of %d: got %v, want full %v or another kind than %s", c.id, err, full, p.kind)
	}
	if err == nil {
		w.callers = append(w.callers, c)
		p.enter(c)
	}
}

// inUse reports whether a caller holds the key, waits for it, or is about to get it by a hand-off.
func (p *place) inUse() bool { return len(p.order) > 0 || len(p.holders) > 0 || p.handing > 0 }

// isOther reports whether the key is in use as another kind of lock.
func (p *place) isOther(kind string) bool { return p.inUse() && p.kind != kind }

func isKindError(err error) bool {
	_, ok := errors.AsType[*queue.KindError](err)
	return ok
}

// enter adds a caller to the model's queue.
func (p *place) enter(c *caller) {
	p.kind = c.Kind
	at := len(p.order)
	for at > 0 && p.order[at-1].since.After(c.since) {
		at--
	}
	p.order = slices.Insert(p.order, at, c)
	c.due = at == 0 && p.begins(c)
}

func (p *place) begins(c *caller) bool {
	return p.open(c) || c.Announces && len(p.holders) > 0 && p.holders[0].shared
}

func (p *place) open(c *caller) bool {
	free := len(p.holders) == 0 || c.Shared && p.holders[0].shared
	return free && p.handing == 0
}

func (p *place) wake() {
	if len(p.order) > 0 {
		p.order[0].due = true
	}
}

// quit removes a caller from the model's queue.
func (p *place) quit(c *caller) {
	at := slices.Index(p.order, c)
	p.order = slices.Delete(p.order, at, at+1)
	if at == 0 && len(p.order) > 0 && p.begins(p.order[0]) {
		p.wake()
	}
}

// steps makes a caller check its state, as after a wake-up.
func (w *world) steps() {
	c := pick(w, w.callers, func(c *caller) bool { return c.asks == "" })
	if c == nil {
		return
	}
	p := w.keys[c.key]
	head := len(p.order) > 0 && p.order[0] == c
	s := w.Next(c.Waiter, w.now)
	w.notef("%d steps: %+v", c.id, s)
	switch {
	case (s.Grant != nil) != (c.state == "granted"):
		w.failf("%d is %s: got the grant %v", c.id, c.state, s.Grant)
	case s.Grant != nil:
		w.Accept(c.Waiter)
		w.gone(c)
	case (s.Err != nil) != (p.kind != c.Kind) || s.Err != nil && !isKindError(s.Err):
		w.failf("%d wants a %s lock, and %s is a %s one: got %v", c.id, c.Kind, c.key, p.kind, s.Err)
	case s.Err != nil:
		w.leave(c)
	case s.Attempt && (!head && !c.Together || !c.due || c.state != "queued"):
		w.failf("%d attempts: %s, head %v, due %v", c.id, c.state, head, c.due)
	case !s.Attempt && (head || c.Together) && c.state == "queued" && c.due && s.Sleep <= 0:
		w.failf("%d is due, and sleeps as long as it likes", c.id)
	case s.Head != (head && !s.Attempt):
		w.failf("%d: head %v", c.id, head)
	case s.Subscribe && s.Sleep <= 0:
		w.failf("%d has to subscribe, but does not leave the lock to other processes", c.id)
	case s.Subscribe:
		w.subscribes(c)
	case s.Attempt:
		w.n++
		c.due, c.asks, c.asked, c.field = false, "sent", w.now, fmt.Sprint("f", w.n)
	}
}

func (w *world) gone(c *caller) {
	w.callers = slices.DeleteFunc(w.callers, func(o *caller) bool { return o == c })
}

// executes runs an attempt in Redis.
func (w *world) executes() {
	c := pick(w, w.callers, func(c *caller) bool { return c.asks == "sent" })
	if c == nil {
		return
	}
	p := w.keys[c.key]
	c.asks = "no"
	shares := c.Shared && len(p.holders) > 0 && p.holders[0].shared && p.redis == p.holders[0].field
	if p.redis == "" || shares {
		c.asks, p.redis = "yes", c.field
	}
	p.hidden = false // it has made its attempt
	w.notef("%d executes at %s: %s", c.id, c.key, c.asks)
}

// answers delivers the answer of Redis to a caller.
func (w *world) answers() {
	c := pick(w, w.callers, func(c *caller) bool { return c.asks == "yes" || c.asks == "no" })
	if c == nil {
		return
	}
	p, yes := w.keys[c.key], c.asks == "yes"
	c.asks = ""
	w.notef("%d has the answer %v", c.id, yes)
	switch {
	case yes:
		o := &owner{holder: holder{field: c.field}, key: c.key, kind: c.Kind, shared: c.Shared}
		if c.state == "queued" {
			p.order = slices.DeleteFunc(p.order, func(other *caller) bool { return other == c })
		}
		w.acquired(c.Waiter, o)
		w.gone(c)
	case c.Several && c.state == "queued" && w.next(2) == 0:
		w.moves(c)
	default:
		w.RecordRefusal(c.Waiter, queue.Refusal{Holder: p.redis}, w.rival(), w.now)
		if c.state == "queued" {
			w.subscribes(c)
		}
	}
}

// rival returns the class of the client that holds the lock elsewhere.
func (w *world) rival() queue.Rival {
	return []queue.Rival{queue.Unseen, queue.Fellow, queue.Stranger}[w.next(3)]
}

// subscribes adds a subscription, confirmed or not, to the queue of a waiter that needs one.
func (w *world) subscribes(c *caller) {
	if w.NeedsSubscription(c.Waiter) {
		s := &subscription{}
		s.confirmed.Store(w.next(2) == 0)
		w.Subscribe(c.Waiter, s)
	}
}

func (w *world) moves(c *caller) {
	w.keys[c.key].quit(c)
	c.key, c.moved = w.key(), true
	other := w.keys[c.key].isOther(c.Kind)
	err := w.Move(c.Waiter, c.key, w.now)
	switch {
	case isKindError(err) != other:
		w.failf("move of %d: got %v, want another kind %v", c.id, err, other)
	case other:
		w.Leave(c.Waiter, w.now)
		w.gone(c)
	default:
		w.keys[c.key].enter(c)
	}
}

// acquired registers a holder with the queues and with the model.
func (w *world) acquired(c *queue.Waiter, o *owner) {
	p := w.keys[o.key]
	got := w.RecordGrant(o.key, c, queue.Grant{Holder: o, Kind: o.kind, Shared: o.shared, Sent: w.now}, w.now)
	var want []*owner
	if len(p.holders) > 0 && (!o.shared || !p.holders[0].shared) {
		want, p.holders = p.holders, nil
	}
	p.kind = o.kind
	p.holders = append(p.holders, o)
	w.holders = append(w.holders, o)
	if len(got) != len(want) {
		w.failf("%s replaced %v, want %v", o.field, got, want)
	}
	for i := range want {
		if got[i].Holder != queue.Holder(want[i]) {
			w.failf("%s replaced %v, want %v", o.field, got, want)
		}
	}
	if len(p.order) > 0 && p.begins(p.order[0]) {
		p.wake()
	}
	for _, c := range p.order {
		if len(p.holders) > 1 || !c.Together || !p.open(c) {
			break // the others attempt one by one
		}
		c.due = true
	}
}

// takesDirectly lets a caller that does not wait take the lock.
func (w *world) takesDirectly() {
	key := w.key()
	if p := w.keys[key]; p.redis == "" {
		w.n++
		o := &owner{holder: holder{field: fmt.Sprint("f", w.n)}, key: key, kind: w.kind()}
		p.redis, p.hidden = o.field, false
		w.notef("%s takes %s directly", o.field, key)
		w.acquired(nil, o)
	}
}

func (w *world) leaves() {
	c := pick(w, w.callers, func(c *caller) bool { return c.asks == "" })
	if c == nil {
		return
	}
	w.leave(c)
}

func (w *world) leave(c *caller) {
	w.notef("%d leaves", c.id)
	grant := w.Leave(c.Waiter, w.now)
	switch c.state {
	case "queued":
		w.keys[c.key].quit(c)
	case "granted":
		if grant == nil {
			w.failf("%d did not get its grant", c.id)
		}
	}
	if (grant != nil) != (c.state == "granted") {
		w.failf("%d is %s: got the grant %v", c.id, c.state, grant)
	}
	w.gone(c) // its holder is already in w.holders and is released from there
}

func (w *world) polls() {
	if c := pick(w, w.callers, func(c *caller) bool { return c.asks == "" }); c != nil {
		w.poll(c)
	}
}

func (w *world) poll(c *caller) {
	w.Poll(c.Waiter)
	if p := w.keys[c.key]; c.state == "queued" && p.order[0] == c {
		c.due = true
	}
}

// startsRelease begins to release a holder, or to hand its lock on.
func (w *world) startsRelease() {
	o := pick(w, w.holders, func(*owner) bool { return true })
	if o == nil {
		return
	}
	w.holders = slices.DeleteFunc(w.holders, func(other *owner) bool { return other == o })
	w.startReleaseOf(o)
}

func (w *world) startReleaseOf(o *owner) {
	p := w.keys[o.key]
	r := &releaseSubscription{from: o}
	got := w.TakeNext(o.key, o, w.now)
	if got != nil {
		r.to = w.nextHolder(p, o)
		if r.to == nil || r.to.Waiter != got {
			w.failf("%s: chose %p, want %v", o.field, got, r.to)
		}
		p.order = slices.DeleteFunc(p.order, func(c *caller) bool { return c == r.to })
		p.handing++
		r.to.state, r.to.due = "chosen", false
		w.n++
		r.next = &owner{holder: holder{field: fmt.Sprint("f", w.n)}, key: o.key, kind: r.to.Kind}
	}
	w.notef("%s begins to release %s, to %v", o.field, o.key, r.to != nil)
	w.releases = append(w.releases, r)
}

// nextHolder returns the caller to which the lock may be handed, or nil.
func (w *world) nextHolder(p *place, o *owner) *caller {
	if o.shared || !slices.Contains(p.holders, o) {
		return nil
	}
	for _, c := range p.order {
		switch {
		case c.Kind != o.kind, c.Several && c.moved, c.asks != "" && w.now.Sub(c.asked) >= queue.LateAnswer:
		case c.Several, c.Shared, c.asks != "":
			return nil
		default:
			return c
		}
	}
	return nil
}

// releaseExecutes executes a release or a hand-off in Redis.
func (w *world) releaseExecutes() {
	r := pick(w, w.releases, func(r *releaseSubscription) bool { return !r.executed })
	if r == nil {
		return
	}
	p := w.keys[r.from.key]
	r.executed, r.mine = true, p.redis == r.from.field
	if r.mine {
		p.redis = ""
		if r.next != nil {
			p.redis = r.next.field
		}
		p.hidden = r.next == nil && !slices.Contains(p.holders, r.from) // its message wakes the head
	}
	w.notef("the release of %s executes: %v", r.from.field, r.mine)
}

// releaseAnswers delivers the answer of Redis to a release.
func (w *world) releaseAnswers() {
	r := pick(w, w.releases, func(r *releaseSubscription) bool { return r.executed })
	if r == nil {
		return
	}
	w.releases = slices.DeleteFunc(w.releases, func(other *releaseSubscription) bool { return other == r })
	p := w.keys[r.from.key]
	w.notef("the release of %s is answered", r.from.field)
	switch {
	case r.to == nil:
		w.ends(r.from)
	case r.mine:
		w.handed(p, r)
	default:
		w.CancelHandOff(r.to.Waiter, w.now)
		p.handing--
		if slices.Contains(w.callers, r.to) {
			r.to.state = "queued"
			p.order = slices.Insert(p.order, 0, r.to)
		}
		p.wake()
		w.ends(r.from)
	}
}

func (w *world) handed(p *place, r *releaseSubscription) {
	got, want := w.CompleteHandOff(r.to.Waiter, r.from, r.next, w.now), slices.Contains(w.callers, r.to)
	if got != want {
		w.failf("handed to %d: got %v, want %v", r.to.id, got, want)
	}
	p.handing--
	if at := slices.Index(p.holders, r.from); at >= 0 {
		p.holders[at], p.kind = r.next, r.next.kind
	} else if len(p.holders) == 0 {
		p.holders, p.kind = []*owner{r.next}, r.next.kind
	}
	if got {
		r.to.state = "granted"
		w.holders = append(w.holders, r.next)
		return
	}
	w.startReleaseOf(r.next)
}

// ends reports to the queues that a holder is gone.
func (w *world) ends(o *owner) {
	p := w.keys[o.key]
	w.RemoveHolder(o.key, o, w.next(5)-2, w.now) // from NoMessage to two
	if at := slices.Index(p.holders, o); at >= 0 {
		p.holders = slices.Delete(p.holders, at, at+1)
		if len(p.holders) == 0 || len(p.order) > 0 && p.open(p.order[0]) {
			p.wake() // even if it would share the lock with the others
		}
	}
}

// stranger takes a lock, or releases it. The message of the release arrives at once, later, or never.
func (w *world) stranger() {
	key := w.key()
	switch p := w.keys[key]; p.redis {
	case "":
		p.redis, p.hidden = "stranger", false
	case "stranger":
		p.redis, p.hidden = "", true
		w.notef("a stranger frees %s", key)
		switch w.next(3) {
		case 0:
			w.notify(key)
		case 1:
			w.Wake(key, "")
			p.wake()
			p.hidden = false
		}
	}
}

func (w *world) message() { w.notify(w.key()) }

// notify delivers a message. The queues may take it for the echo of a release, or it may be superfluous.
func (w *world) notify(key string) {
	p := w.keys[key]
	hears := []func(string, time.Time) []queue.Holder{w.RecordMessage, w.RecordMessage, w.RecordConfirmation}
	got := hears[w.next(len(hears))](key, w.now)
	w.notef("a message on %s", key)
	if got != nil && len(got) != len(p.holders) {
		w.failf("a message on %s: got the holders %v, want %v", key, got, p.holders)
	}
	if len(p.order) > 0 {
		p.order[0].due = p.order[0].due || w.Due(p.order[0].Waiter)
	}
}

func (w *world) passes() { w.now = w.now.Add(time.Duration(1+w.next(100)) * ms) }

// expires makes the lease of the holder in Redis expire.
func (w *world) expires() {
	if p := w.keys[w.key()]; p.redis != "" {
		p.redis, p.hidden = "", true
	}
}

// loses lets a holder notice that its lease has expired.
func (w *world) loses() {
	o := pick(w, w.holders, func(o *owner) bool { return w.keys[o.key].redis != o.field })
	if o != nil {
		w.holders = slices.DeleteFunc(w.holders, func(other *owner) bool { return other == o })
		w.notef("%s is lost", o.field)
		w.ends(o)
	}
}

// compare requires that the queues match the model, and that no waiter is stranded.
func (w *world) compare() {
	live := 0
	for key, p := range w.keys {
		order := w.Order(key)
		if !slices.EqualFunc(order, p.order, func(a *queue.Waiter, b *caller) bool { return a == b.Waiter }) {
			w.failf("%s: got the order %v, want %v", key, order, p.order)
		}
		if got := w.Holders(key); !slices.EqualFunc(got, p.holders, func(a queue.Holder, b *owner) bool { return a == queue.Holder(b) }) {
			w.failf("%s: got the holders %v, want %v", key, got, p.holders)
		}
		for _, c := range p.order {
			if got := w.Due(c.Waiter); got != c.due {
				w.failf("%s: %d is due %v, want %v", key, c.id, got, c.due)
			}
		}
		if p.inUse() {
			live++
		}
		w.wantNoneStranded(key, p)
	}
	if got := w.Live(); got != live {
		w.failf("got %d queues, want %d", got, live)
	}
	if got := w.Waiting(); got != len(w.callers) {
		w.failf("got %d waiters, want %d", got, len(w.callers))
	}
}

// wantNoneStranded requires that the head of a free lock attempts, or that an event in progress will make it
// attempt. It may wait for its poll only if this process does not know of the event that freed the lock.
func (w *world) wantNoneStranded(key string, p *place) {
	if p.redis != "" || len(p.order) == 0 || len(p.holders) > 0 || p.handing > 0 || p.hidden {
		return
	}
	if head := p.order[0]; !head.due && head.asks != "sent" && head.asks != "yes" {
		w.failf("%s is free, and %d is stranded", key, head.id)
	}
}

// drains completes all events in progress and requires that every waiting caller gets the lock.
func (w *world) drains() {
	most := 200 + len(w.callers) // each round has one turn at least
	for round := 0; len(w.callers)+len(w.holders)+len(w.releases) > 0; round++ {
		if round > most {
			w.failf("%d callers never got the lock", len(w.callers))
		}
		for _, p := range w.keys {
			if p.redis == "stranger" || !w.known(p.redis) {
				p.redis, p.hidden = "", true // all strangers and lost holders leave
			}
		}
		for _, step := range []func(){w.executes, w.answers, w.startsRelease, w.releaseExecutes, w.releaseAnswers} {
			for range len(w.callers) + len(w.holders) + len(w.releases) {
				step()
				w.compare()
			}
		}
		for _, d := range []time.Duration{2 * time.Second, queue.GiveWay} { // so that sleeping callers wake
			w.now = w.now.Add(d)
			for _, c := range slices.Clone(w.callers) {
				if c.asks == "" {
					w.poll(c)
				}
			}
			for range 3 * len(w.callers) {
				w.steps()
				w.compare()
			}
		}
	}
	if n, live := w.Waiting(), w.Live(); n != 0 || live != 0 {
		w.failf("%d waiters and %d queues are left", n, live)
	}
}

// known reports whether a field in Redis belongs to a holder that will release it.
func (w *world) known(field string) bool {
	return slices.ContainsFunc(w.holders, func(o *owner) bool { return o.field == field }) ||
		slices.ContainsFunc(w.releases, func(r *releaseSubscription) bool {
			return r.from.field == field || r.next != nil && r.next.field == field
		}) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool { return c.field == field && c.asks == "yes" })
}

func TestQueues_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(1000, 300)) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, random.IntN)
		for range 400 {
			w.event()
		}
		w.drains()
	}
}

// FuzzModel searches for sequences of events that the seeds do not contain.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 0, 6, 0, 8, 0, 12, 0, 14, 0, 16, 0})
	f.Add([]byte("a stranger has it, and frees it while a waiter is chosen"))
	f.Fuzz(func(t *testing.T, events []byte) {
		rest := rand.New(rand.NewPCG(0, 0)) // enough for drains, in which every caller has a turn
		w := newWorld(t, func(n int) int {
			if len(events) == 0 {
				return rest.IntN(n)
			}
			e := events[0]
			events = events[1:]
			return int(e) % n
		})
		for range 1000 {
			if len(events) == 0 {
				break
			}
			w.event()
		}
		w.drains()
	})
}
