package lockz

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

const (
	fleetTimeout = 5 * time.Second
	fleetLimit   = 1_000 // keys looked at for one answer
	fleetNames   = 10    // holders, and waiters, of one lock that are listed
)

// fleetState is a part of the list of all locks in Redis, as JSON has it: the answer to fleet=1.
type fleetState struct {
	Time    time.Time   `json:"time"`
	Client  string      `json:"client"` // through which Redis was asked
	Looked  int64       `json:"looked"` // keys that were looked at for this part, about
	Keys    int64       `json:"keys"`   // keys in all masters
	Cursor  string      `json:"cursor"` // of the next part, for the query; empty: this is the last one
	Locks   []fleetLock `json:"locks"`
	Clients []string    `json:"clients"` // the clients of this process
}

// fleetLock is a lock in Redis, whoever holds it.
type fleetLock struct {
	Key         string        `json:"key,omitempty"`
	KeyHash     string        `json:"key_hash"`
	Kind        string        `json:"kind"`        // as far as the layout tells
	TTL         float64       `json:"ttl_seconds"` // 0: it is free; negative: it has no end
	Holders     []fleetHolder `json:"holders"`     // 10 at most, as Waiters; the counts say how many there are
	HolderCount int           `json:"holder_count"`
	Waiters     []string      `json:"waiters"` // of a fair lock, the next one first
	WaiterCount int           `json:"waiter_count"`
	Token       int64         `json:"token,omitempty"`
}

// fleetHolder is one who has a lock.
type fleetHolder struct {
	Field string  `json:"field"`
	Count int64   `json:"count"`
	TTL   float64 `json:"ttl_seconds"`            // negative: it has no end
	Here  bool    `json:"here"`                   // it is of a client of this process
	Held  float64 `json:"held_seconds,omitempty"` // where it is known here
	since time.Time
}

// fleetFrame is what the template gets.
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
	Buttons []*button // of the locks, if the reader may release; nil: a lock has none
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
		p.tell(w, r, http.StatusNotFound, "No client", "No lock client of this name is open, so that there is no Redis to ask.")
		return
	}
	if q.Get("prefix") != "" && !p.cfg.rawKeys {
		p.tell(w, r, http.StatusForbidden, "Keys are hidden", "A list by the beginning of the keys would show how they begin. Search for a hash instead, or have the page show keys (WithRawKeys).")
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
	p.sortLocks(page.Locks)
	page.Locks = p.searchLocks(page.Locks, q.Get("q"))
	list := p.fleetOf(client, &page)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, "application/json; charset=utf-8", list)
		return
	}
	f := fleetFrame{
		fleetState: list, Next: nextQuery(q, client, page.Cursor), Prefix: q.Get("prefix"), Search: q.Get("q"), Notice: noticeOf(q.Get("notice")),
		RawKeys: p.cfg.rawKeys, First: q.Get("cursor") == "", Redis: printable(client.Address(), 2*maxName), Service: printable(p.cfg.service, maxName), Host: printable(p.host, maxName),
	}
	if p.allows(r) {
		f.Buttons = p.fleetButtons(client, page.Locks, list.Locks, cookieOf(w, r))
	}
	p.render(w, http.StatusOK, "fleet", f)
}

// sortLocks puts locks with a queue in Redis first, and then sorts by what is shown of the keys.
func (p *Page) sortLocks(list []core.LockEntry) {
	slices.SortFunc(list, func(a, b core.LockEntry) int {
		return cmp.Or(cmp.Compare(b.WaiterCount, a.WaiterCount), cmp.Compare(p.sortKey(a.Key), p.sortKey(b.Key)))
	})
}

// searchLocks are the locks with a text in what is shown of them.
func (p *Page) searchLocks(list []core.LockEntry, text string) []core.LockEntry {
	search := listing{search: strings.ToLower(text)}
	return slices.DeleteFunc(list, func(e core.LockEntry) bool {
		raw, hash := p.key(e.Key)
		return !search.has(slices.Concat(fieldsOf(&e), e.Waiters, []string{raw, hash, string(e.Kind)})...)
	})
}

// fleetButtons makes a button for each lock whose holders are all shown. It takes the lock from no
// other holder.
func (p *Page) fleetButtons(client *core.Client, locks []core.LockEntry, shown []fleetLock, cookie string) []*button {
	list := make([]*button, len(locks))
	for i := range locks {
		if n := locks[i].HolderCount; n == 0 || n > fleetNames {
			continue
		}
		b := button{View: "?fleet=1&release=1", Lock: lockRow{Key: shown[i].Key, KeyHash: shown[i].KeyHash, Keys: 1}}
		var since []time.Time
		for _, h := range shown[i].Holders {
			b.Holders, since = append(b.Holders, buttonHolder{h.Field, "", h.Held}), append(since, h.since)
		}
		list[i] = p.sealed(b, client, locks[i].Key, fieldsOf(&locks[i]), since, cookie)
	}
	return list
}

// asked is the client that the query names, or else the first one.
func (p *Page) asked(id string) *core.Client {
	if id != "" {
		return p.clientOf(id)
	}
	for _, c := range p.open() {
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
	for _, name := range []string{"prefix", "q"} {
		if text := q.Get(name); text != "" {
			next.Set(name, text)
		}
	}
	return "?" + next.Encode()
}

func (p *Page) fleetOf(client *core.Client, page *core.LockPage) *fleetState {
	list := &fleetState{Time: time.Now(), Client: client.ID(), Looked: page.Looked, Keys: page.Keys, Cursor: page.Cursor, Locks: []fleetLock{}}
	for _, c := range p.open() {
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

func (p *Page) fleetLock(e *core.LockEntry, clients []string) fleetLock {
	l := fleetLock{
		Kind: string(e.Kind), TTL: seconds(e.TTL), HolderCount: e.HolderCount,
		WaiterCount: e.WaiterCount, Token: e.Token, Holders: []fleetHolder{}, Waiters: []string{},
	}
	l.Key, l.KeyHash = p.key(e.Key)
	for _, h := range e.Holders[:min(fleetNames, len(e.Holders))] {
		shown := fleetHolder{
			Field: printable(h.Field, maxName), Count: h.Count, TTL: seconds(h.TTL), Here: slices.Contains(clients, h.ClientID()),
		}
		if own := p.table.ofField(e.Key, h.Field); own != nil {
			shown.Held, shown.since = seconds(time.Since(own.acquired)), own.acquired
		}
		l.Holders = append(l.Holders, shown)
	}
	for _, f := range e.Waiters[:min(fleetNames, len(e.Waiters))] {
		l.Waiters = append(l.Waiters, printable(f, maxName))
	}
	return l
}
