package lockz

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
)

const (
	fleetTimeout = 5 * time.Second
	fleetLimit   = 1_000 // keys looked at for one answer
	fleetNames   = 10    // holders, and waiters, of one lock that are listed
)

// Fleet is a part of the list of all locks in Redis, as JSON has it: the answer to fleet=1.
type Fleet struct {
	Time    time.Time   `json:"time"`
	Client  string      `json:"client"` // through which Redis was asked
	Looked  int64       `json:"looked"` // keys that were looked at for this part, about
	Keys    int64       `json:"keys"`   // keys in all masters
	Cursor  string      `json:"cursor"` // of the next part, for the query; empty: this is the last one
	Locks   []FleetLock `json:"locks"`
	Clients []string    `json:"clients"` // the clients that are watched
}

// FleetLock is a lock in Redis, whoever holds it.
type FleetLock struct {
	Key         string        `json:"key,omitempty"`
	KeyHash     string        `json:"key_hash"`
	Kind        string        `json:"kind"`        // as far as the layout tells
	TTL         float64       `json:"ttl_seconds"` // 0: it is free; negative: it has no end
	Holders     []FleetHolder `json:"holders"`     // 10 at most, as Waiters; the counts say how many there are
	HolderCount int           `json:"holder_count"`
	Waiters     []string      `json:"waiters"` // of a fair lock, the next one first
	WaiterCount int           `json:"waiter_count"`
	Token       int64         `json:"token,omitempty"`
}

// FleetHolder is one who has a lock.
type FleetHolder struct {
	Field string  `json:"field"`
	Count int64   `json:"count"`
	TTL   float64 `json:"ttl_seconds"` // negative: it has no end
	Here  bool    `json:"here"`        // it is of a client that is watched
}

// fleetFrame is what the template gets.
type fleetFrame struct {
	*Fleet

	First   bool   // this is the first part
	Next    string // query of the next part
	Prefix  string
	Notice  string
	RawKeys bool
	Buttons bool     // the reader may release
	Tickets []string // of the locks, if so; empty where nobody holds it
}

// serveFleet looks at some keys in Redis and lists the locks among them.
func (p *Page) serveFleet(w http.ResponseWriter, r *http.Request) {
	if !p.cfg.fleet {
		p.tell(w, r, http.StatusNotFound, "Not found", "The view of all locks is not switched on.")
		return
	}
	q := r.URL.Query()
	client := p.asked(q.Get("client"))
	if client == nil {
		p.tell(w, r, http.StatusNotFound, "No client", "No lock client of this name is watched, so that there is no Redis to ask.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), fleetTimeout)
	defer cancel()
	limit := fleetLimit
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = min(n, maxRows)
	}
	page, err := client.Locks(ctx, core.LockQuery{Prefix: q.Get("prefix"), Cursor: q.Get("cursor"), Limit: limit})
	switch {
	case errors.Is(err, core.ErrInvalid):
		p.tell(w, r, http.StatusBadRequest, "No such part", "The cursor in the query is none: begin with the first part, without a cursor.")
		return
	case err != nil:
		p.tell(w, r, http.StatusBadGateway, "Redis was not asked", "It did not answer: "+core.ErrorText(err))
		return
	}
	sortLocks(page.Locks)
	list := p.fleetOf(client, &page)
	if wantsJSON(r) {
		answerJSON(w, list)
		return
	}
	f := fleetFrame{
		Fleet: list, Next: nextQuery(q, client, page.Cursor), Prefix: q.Get("prefix"), Notice: noticeOf(q.Get("notice")),
		RawKeys: p.cfg.rawKeys, First: q.Get("cursor") == "",
	}
	if f.Buttons = p.allows(r); f.Buttons {
		f.Tickets = p.fleetTickets(client, page.Locks)
	}
	p.render(w, http.StatusOK, "fleet", f)
}

// sortLocks puts those with a queue in Redis first.
func sortLocks(list []core.LockEntry) {
	slices.SortFunc(list, func(a, b core.LockEntry) int {
		return cmp.Or(cmp.Compare(b.WaiterCount, a.WaiterCount), cmp.Compare(a.Key, b.Key))
	})
}

func (p *Page) fleetTickets(client *core.Client, locks []core.LockEntry) []string {
	list, now := make([]string, len(locks)), time.Now()
	for i := range locks {
		if locks[i].HolderCount > 0 {
			list[i] = p.ticketFor(client, locks[i].Key, fieldsOf(&locks[i]), now)
		}
	}
	return list
}

// asked is the client that the query names, or else the first one.
func (p *Page) asked(id string) *core.Client {
	if id != "" {
		return p.clientOf(id)
	}
	for _, c := range p.watched() {
		return c
	}
	return nil
}

// nextQuery is empty after the last part.
func nextQuery(q url.Values, client *core.Client, cursor string) string {
	if cursor == "" {
		return ""
	}
	next := url.Values{"fleet": {"1"}, "client": {client.ID()}, "cursor": {cursor}}
	if prefix := q.Get("prefix"); prefix != "" {
		next.Set("prefix", prefix)
	}
	return "?" + next.Encode()
}

func (p *Page) fleetOf(client *core.Client, page *core.LockPage) *Fleet {
	list := &Fleet{Time: time.Now(), Client: client.ID(), Looked: page.Looked, Keys: page.Keys, Cursor: page.Cursor, Locks: []FleetLock{}}
	for _, c := range p.watched() {
		list.Clients = append(list.Clients, c.ID())
	}
	for i := range page.Locks {
		list.Locks = append(list.Locks, p.fleetLock(&page.Locks[i], list.Clients))
	}
	return list
}

func fieldsOf(e *core.LockEntry) []string {
	var list []string
	for _, h := range e.Holders {
		list = append(list, h.Field)
	}
	return list
}

func (p *Page) fleetLock(e *core.LockEntry, clients []string) FleetLock {
	l := FleetLock{
		KeyHash: hashOf(e.Key), Kind: string(e.Kind), TTL: seconds(e.TTL), HolderCount: e.HolderCount,
		WaiterCount: e.WaiterCount, Token: e.Token, Holders: []FleetHolder{}, Waiters: []string{},
	}
	if p.cfg.rawKeys {
		l.Key = printable(e.Key, maxName)
	}
	for _, h := range e.Holders[:min(fleetNames, len(e.Holders))] {
		l.Holders = append(l.Holders, FleetHolder{
			Field: printable(h.Field, maxName), Count: h.Count, TTL: seconds(h.TTL), Here: slices.Contains(clients, h.ClientID()),
		})
	}
	for _, f := range e.Waiters[:min(fleetNames, len(e.Waiters))] {
		l.Waiters = append(l.Waiters, printable(f, maxName))
	}
	return l
}
