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
	fleetLimit   = 1_000 // keys that Redis reads for one answer
	fleetNames   = 10    // holders, and waiters, that are listed for one lock
)

// fleetState is one part of the list of all locks in Redis: the JSON answer to fleet=1.
type fleetState struct {
	Time    time.Time   `json:"time"`
	Client  string      `json:"client"` // id of the client that asked Redis
	Looked  int64       `json:"looked"` // approximate number of keys read for this part
	Keys    int64       `json:"keys"`   // keys in all masters
	Cursor  string      `json:"cursor"` // query value for the next part; empty: this is the last part
	Locks   []fleetLock `json:"locks"`
	Clients []string    `json:"clients"` // the clients of this process
}

// fleetLock is a lock in Redis. Any process may hold it.
type fleetLock struct {
	Key         string        `json:"key,omitempty"`
	KeyHash     string        `json:"key_hash"`
	Kind        string        `json:"kind"`        // as far as the data in Redis shows the kind
	TTL         float64       `json:"ttl_seconds"` // 0: it is free; negative: it does not expire
	Holders     []fleetHolder `json:"holders"`     // at most 10, like Waiters
	HolderCount int           `json:"holder_count"`
	Waiters     []string      `json:"waiters"` // the waiters of a fair lock, the next one first
	WaiterCount int           `json:"waiter_count"`
	Token       int64         `json:"token,omitempty"`

	key string // as in Redis
}

// fleetHolder is a holder of a lock.
type fleetHolder struct {
	Field string  `json:"field"`
	Count int64   `json:"count"`
	TTL   float64 `json:"ttl_seconds"`            // negative: it does not expire
	Here  bool    `json:"here"`                   // the holder belongs to a client of this process
	Held  float64 `json:"held_seconds,omitempty"` // age of the hold, if it belongs to this process
	since time.Time
	field string // as in Redis
}

// fleet lists the locks in the Redis of the clients of this process.
type fleet struct {
	tracker *tracker
	names   keyNames
}

// list asks Redis for a part of the list. The query names the part and the client to ask. If list fails, it
// returns a message for the user.
func (f *fleet) list(ctx context.Context, q url.Values) (*fleetState, *core.Client, *message) {
	client := f.clientOf(q.Get("client"))
	if client == nil {
		return nil, nil, &message{"No client", http.StatusNotFound, "No open lock client has this id, so no Redis can be asked."}
	}
	if q.Get("prefix") != "" && !f.names.raw {
		return nil, nil, &message{"Keys are hidden", http.StatusForbidden, "A list of keys with a prefix would reveal how keys begin. Search for a hash instead, or have the page show keys (WithRawKeys)."}
	}
	ctx, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	limit := fleetLimit
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = min(n, maxRows)
	}
	part, err := client.Locks(ctx, core.LockQuery{Prefix: q.Get("prefix"), Cursor: q.Get("cursor"), Limit: limit})
	switch {
	case errors.Is(err, core.ErrInvalid):
		return nil, nil, &message{"No such part", http.StatusBadRequest, "The cursor in the query is not valid. Begin with the first part, without a cursor."}
	case err != nil:
		return nil, nil, &message{"Redis did not answer", http.StatusBadGateway, "Redis did not answer: " + core.ErrorText(err)}
	}
	f.sort(part.Locks)
	part.Locks = f.search(part.Locks, q.Get("q"))
	return f.state(client, &part), client, nil
}

// clientOf returns the client with an id, or the first client if the id is empty.
func (f *fleet) clientOf(id string) *core.Client {
	if id != "" {
		return f.tracker.clients.find(id)
	}
	for _, c := range f.tracker.clients.open() {
		return c
	}
	return nil
}

// sort puts locks with a queue in Redis first, and sorts by the shown names of the keys.
func (f *fleet) sort(list []core.LockEntry) {
	slices.SortFunc(list, func(a, b core.LockEntry) int {
		return cmp.Or(cmp.Compare(b.WaiterCount, a.WaiterCount), cmp.Compare(f.names.order(a.Key), f.names.order(b.Key)))
	})
}

// search returns the locks whose row shows a text.
func (f *fleet) search(list []core.LockEntry, text string) []core.LockEntry {
	search := listing{search: strings.ToLower(text)}
	return slices.DeleteFunc(list, func(e core.LockEntry) bool {
		raw, hash := f.names.name(e.Key)
		texts := slices.Concat(e.Waiters, []string{raw, hash, string(e.Kind)})
		for _, h := range e.Holders {
			texts = append(texts, h.Field)
		}
		return !search.has(texts...)
	})
}

func (f *fleet) state(client *core.Client, part *core.LockPage) *fleetState {
	list := &fleetState{Time: time.Now(), Client: client.ID(), Looked: part.Looked, Keys: part.Keys, Cursor: part.Cursor, Locks: []fleetLock{}}
	for _, c := range f.tracker.clients.open() {
		list.Clients = append(list.Clients, c.ID())
	}
	for i := range part.Locks {
		list.Locks = append(list.Locks, f.lock(&part.Locks[i], list.Clients))
	}
	return list
}

func (f *fleet) lock(e *core.LockEntry, clients []string) fleetLock {
	l := fleetLock{
		Kind: string(e.Kind), TTL: seconds(e.TTL), HolderCount: e.HolderCount,
		WaiterCount: e.WaiterCount, Token: e.Token, Holders: []fleetHolder{}, Waiters: []string{}, key: e.Key,
	}
	l.Key, l.KeyHash = f.names.name(e.Key)
	for _, h := range e.Holders[:min(fleetNames, len(e.Holders))] {
		shown := fleetHolder{
			Field: printable(h.Field, maxName), Count: h.Count, TTL: seconds(h.TTL), Here: slices.Contains(clients, h.ClientID()), field: h.Field,
		}
		if own := f.tracker.table.ofField(e.Key, h.Field); own != nil {
			shown.Held, shown.since = seconds(time.Since(own.acquired)), own.acquired
		}
		l.Holders = append(l.Holders, shown)
	}
	for _, w := range e.Waiters[:min(fleetNames, len(e.Waiters))] {
		l.Waiters = append(l.Waiters, printable(w, maxName))
	}
	return l
}

// nextQuery returns the query of the next part, or "" after the last part.
func nextQuery(q url.Values, client, cursor string) string {
	if cursor == "" {
		return ""
	}
	next := url.Values{"fleet": {"1"}, "client": {client}, "cursor": {cursor}}
	for _, name := range []string{"prefix", "q"} {
		if text := q.Get(name); text != "" {
			next.Set(name, text)
		}
	}
	return "?" + next.Encode()
}
