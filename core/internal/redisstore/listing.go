package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Query is what a listing wants.
type Query struct {
	Prefix string // of keys
	Cursor string // of the page before; empty: the first one
	Limit  int    // keys to look at
	Counts bool   // list counts, too
}

// Page is a part of a listing.
type Page struct {
	Found  []Found
	Cursor string // of the next page; empty: there is none
	Looked int64  // keys that were looked at, about
	Keys   int64  // keys in all masters
}

const (
	scanStep    = 100 // keys that one SCAN looks at: in about 0.1 ms
	inspectStep = 100 // keys that are inspected in one pipeline
)

// List looks at some more keys, of one master after the other. What changes its master meanwhile,
// by the move of a slot, may be missed.
func (s *Store) List(ctx context.Context, q Query) (Page, error) {
	at, err := readCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	masters, err := s.masters(ctx)
	if err != nil {
		return Page{}, err
	}
	l := &lister{store: s, query: q, at: at, seen: make(map[string]bool), listed: make(map[string]bool), knows: make(map[string]bool)}
	for _, m := range masters {
		l.page.Keys += m.keys
	}
	l.at.forget(masters)
	for asked := 0; asked < q.Limit; {
		m := l.at.master(masters)
		if m == nil {
			return l.page, nil
		}
		step := min(scanStep, q.Limit-asked)
		asked += step
		if err := l.step(ctx, m, step); err != nil {
			return Page{}, err
		}
	}
	if l.at.master(masters) != nil {
		l.page.Cursor = l.at.String()
	}
	return l.page, nil
}

type lister struct {
	store  *Store
	query  Query
	at     cursor
	page   Page
	seen   map[string]bool // names that SCAN gave; it may give one twice
	listed map[string]bool // keys in the page
	knows  map[string]bool // masters that have got the script
}

func (l *lister) step(ctx context.Context, m *master, step int) error {
	keys, next, err := m.client.Scan(ctx, l.at.Next, pattern(l.query.Prefix), int64(step)).Result()
	if err != nil {
		return err
	}
	l.page.Looked += l.at.advance(m, next, step)
	var some []candidate
	for _, key := range keys {
		some = l.admit(some, key)
	}
	for part := range slices.Chunk(some, inspectStep) {
		if err := l.inspect(ctx, m, part); err != nil {
			return err
		}
	}
	return nil
}

// inspect lists those of some keys that are locks.
func (l *lister) inspect(ctx context.Context, m *master, some []candidate) error {
	found, err := l.store.inspectAll(ctx, m.client, some, l.knows[m.id])
	if err != nil {
		return err
	}
	l.knows[m.id] = true
	for i := range found {
		if l.wants(&found[i], some[i]) {
			l.listed[found[i].Key] = true
			l.page.Found = append(l.page.Found, found[i])
		}
	}
	return nil
}

type candidate struct {
	key   string
	queue bool // its queue was found, and not the key
}

// admit appends the key of a lock that a key may be, or belong to: a fair lock that is free and has a
// queue has no other. Once in a page.
func (l *lister) admit(some []candidate, name string) []candidate {
	c := candidate{key: name}
	if tag, is := strings.CutPrefix(name, queuePrefix); is {
		c = candidate{key: underived(tag), queue: true}
	} else if subsidiary(name) {
		return some
	}
	if !strings.HasPrefix(c.key, l.query.Prefix) || l.seen[name] {
		return some
	}
	l.seen[name] = true
	return append(some, c)
}

// wants reports whether to list what was found. A lock whose queue was found, too, is listed for its key.
func (l *lister) wants(f *Found, c candidate) bool {
	switch {
	case f.What == "" || l.listed[f.Key]:
		return false
	case f.What == l.store.kinds.PlainSemaphore.Name:
		return l.query.Counts
	default:
		return !c.queue || f.Held == 0
	}
}

// subsidiary reports whether a key belongs to a lock, by its name.
func subsidiary(key string) bool {
	for _, prefix := range [...]string{timeoutsPrefix, tokenPrefix, unlockPrefix} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.ContainsFunc([]string{":interlock_ops", ":interlock_seen", ":interlock_writer"}, func(suffix string) bool {
		return strings.HasSuffix(key, suffix)
	}) || strings.Contains(key, ":rwlock_timeout:")
}

// underived is the key of which the tag is in a derived name: the one without braces, where there are two.
func underived(tag string) string {
	inside, whole := strings.CutPrefix(tag, "{")
	inside, ends := strings.CutSuffix(inside, "}")
	if whole && ends && !strings.ContainsAny(inside, "{") {
		return inside
	}
	return tag
}

// pattern matches the keys that begin with a prefix, and those that belong to them.
func pattern(prefix string) string {
	if prefix == "" {
		return "*"
	}
	return "*" + escape(prefix) + "*"
}

// escape makes a pattern of a text, that matches it.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// inspectAll asks a master what keys are, in one pipeline. Where it need not know the script the first
// command has it, and it knows it then. A key that has moved meanwhile is asked for where it is by now.
func (s *Store) inspectAll(ctx context.Context, node *redis.Client, some []candidate, known bool) ([]Found, error) {
	pipe := node.Pipeline()
	for i, c := range some {
		verb, body := "evalsha", s.inspection.Digest
		if i == 0 && !known {
			verb, body = "eval", s.inspection.Source
		}
		pipe.Do(ctx, append([]any{verb, body, 1, c.key}, besides(c.key)...)...)
	}
	replies, _ := pipe.Exec(ctx) //nolint:errcheck // each has its own
	list := make([]Found, len(some))
	for i, c := range some {
		reply, err := replies[i].(*redis.Cmd).Result() //nolint:errcheck,forcetypeassert // Do makes them
		switch {
		case err == nil:
			list[i], err = readFound(c.key, reply)
		case s.cluster != nil && moved(err) || wire.MeaningOf(err) == wire.MeansNoScript:
			call := s.Inspect(time.Now(), c.key)
			list[i], _, err = call.Wait(ctx, time.Now().Add(s.cfg.Timeout))
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// moved reports whether another node of a Cluster has the key, or may have it.
func moved(err error) bool {
	means := wire.MeaningOf(err)
	return means == wire.MeansElsewhere || means == wire.MeansInMotion
}

type master struct {
	client *redis.Client
	id     string // of its process, where it tells
	keys   int64
}

// masters are those of the Cluster, or the only one, in an order that lasts as long as they do.
func (s *Store) masters(ctx context.Context) ([]master, error) {
	if s.cluster == nil {
		m, err := introduced(ctx, s.single)
		return []master{m}, err
	}
	var mu sync.Mutex
	var list []master
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		m, err := introduced(ctx, s.clone(node))
		mu.Lock()
		defer mu.Unlock()
		list = append(list, m)
		return err
	})
	slices.SortFunc(list, func(a, b master) int { return strings.Compare(a.id, b.id) })
	return list, err
}

// introduced asks a master how many keys it has, and who it is. It may refuse the latter: then it is
// its address, and that it was started anew is not seen.
func introduced(ctx context.Context, node *redis.Client) (master, error) {
	pipe := node.Pipeline()
	keys, info := pipe.DBSize(ctx), pipe.Info(ctx, "server")
	_, _ = pipe.Exec(ctx) //nolint:errcheck // each command says what became of it
	if err := keys.Err(); err != nil {
		return master{}, err
	}
	m := master{client: node, id: node.Options().Addr, keys: keys.Val()}
	for line := range strings.Lines(info.Val()) {
		if run, is := strings.CutPrefix(line, "run_id:"); is {
			m.id = strings.TrimSpace(run)
		}
	}
	return m, nil
}
