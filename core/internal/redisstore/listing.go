package redisstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Query selects the locks of a Page.
type Query struct {
	Prefix string // prefix of the keys
	Cursor string // cursor of the previous page; empty: the first page
	Limit  int    // number of keys to scan
	Counts bool   // also list plain semaphores and latches
}

// Page is one page of a listing.
type Page struct {
	Found  []Found
	Cursor string // cursor of the next page; empty: this is the last page
	Looked int64  // approximate number of keys scanned
	Keys   int64  // number of keys in all masters
}

const (
	scanStep    = 100 // number of keys that one SCAN scans, in about 0.1 ms
	inspectStep = 100 // keys that are inspected in one pipeline
)

// List scans the next Limit keys, one master after the other. It may miss a key that moves to
// another master during the listing.
func (s *Store) List(ctx context.Context, q Query) (Page, error) {
	at, err := readCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	masters, err := s.masters(ctx)
	if err != nil {
		return Page{}, err
	}
	l := &lister{store: s, query: q, at: at, seen: make(map[string]bool), listed: make(map[string]bool), loaded: make(map[string]bool)}
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
	seen   map[string]bool // names that SCAN returned; SCAN may return a name twice
	listed map[string]bool // keys in the page
	loaded map[string]bool // masters that have the script in their cache
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

// inspect lists the locks among some keys.
func (l *lister) inspect(ctx context.Context, m *master, some []candidate) error {
	found, err := l.store.inspectAll(ctx, m.client, some, l.loaded[m.id])
	if err != nil {
		return err
	}
	l.loaded[m.id] = true
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
	queue bool // the queue was found, not the key
}

// admit appends the key of the lock that a name may belong to. Each name counts once in a page. The
// name of a queue counts, because a free fair lock with waiters has no other key.
func (l *lister) admit(some []candidate, name string) []candidate {
	c := candidate{key: name}
	if tag, is := strings.CutPrefix(name, queuePrefix); is {
		c = candidate{key: keyOfTag(tag), queue: true}
	} else if subsidiary(name) {
		return some
	}
	if !strings.HasPrefix(c.key, l.query.Prefix) || l.seen[name] {
		return some
	}
	l.seen[name] = true
	return append(some, c)
}

// wants reports whether to list a found lock. If both the key and the queue of a lock were found, the
// lock is listed for its key.
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

// subsidiary reports whether a key, by its name, belongs to a lock but is not the key of the lock. Keys of package fence
// count, because the number in them looks like a semaphore.
func subsidiary(key string) bool {
	for _, prefix := range [...]string{timeoutsPrefix, tokenPrefix, unlockPrefix} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.ContainsFunc([]string{":interlock_ops", ":interlock_seen", ":interlock_writer", ":interlock_fence"}, func(suffix string) bool {
		return strings.HasSuffix(key, suffix)
	}) || strings.Contains(key, ":rwlock_timeout:")
}

// keyOfTag returns the key from which a name with this hash tag was derived. Two keys have the same
// tag if one of them is the other in braces. Then keyOfTag returns the key without braces.
func keyOfTag(tag string) string {
	inside, whole := strings.CutPrefix(tag, "{")
	inside, ends := strings.CutSuffix(inside, "}")
	if whole && ends && !strings.ContainsAny(inside, "{") {
		return inside
	}
	return tag
}

// pattern returns a pattern of SCAN that matches the keys that begin with a prefix, and the names that are derived
// from such keys.
func pattern(prefix string) string {
	if prefix == "" {
		return "*"
	}
	return "*" + escape(prefix) + "*"
}

// inspectAll inspects keys of a master in one pipeline. known reports whether the master has the script in
// its cache. If it does not, the first command contains the script. A key that has moved since the SCAN is
// inspected on its new node.
func (s *Store) inspectAll(ctx context.Context, node *redis.Client, some []candidate, known bool) ([]Found, error) {
	pipe := node.Pipeline()
	for i, c := range some {
		verb, body := "evalsha", s.inspection.Digest
		if i == 0 && !known {
			verb, body = "eval", s.inspection.Source
		}
		pipe.Do(ctx, append([]any{verb, body, 1, c.key}, inspectArgs(c.key)...)...)
	}
	replies, _ := pipe.Exec(ctx) //nolint:errcheck // each command has its own error
	list := make([]Found, len(some))
	for i, c := range some {
		reply, err := replies[i].(*redis.Cmd).Result() //nolint:errcheck,forcetypeassert // Do makes them
		switch {
		case err == nil:
			list[i], err = readFound(c.key, reply)
		case s.cluster != nil && redirects(err) || wire.MeaningOf(err) == wire.MeansNoScript:
			call := s.Inspect(time.Now(), c.key)
			list[i], _, err = call.Wait(ctx, time.Now().Add(s.cfg.Timeout))
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// redirects reports whether another node of a Cluster has the key, or may have it.
func redirects(err error) bool {
	means := wire.MeaningOf(err)
	return means == wire.MeansElsewhere || means == wire.MeansInMotion
}

type master struct {
	client *redis.Client
	id     string // run_id of its process, or its address
	keys   int64
}

// masters returns the masters of the Cluster, or the only one, in an order that is stable until a master
// is restarted or replaced.
func (s *Store) masters(ctx context.Context) ([]master, error) {
	if s.cluster == nil {
		m, err := identify(ctx, s.single)
		return []master{m}, err
	}
	var mu sync.Mutex
	var list []master
	err := s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		m, err := identify(ctx, s.clone(node))
		mu.Lock()
		defer mu.Unlock()
		list = append(list, m)
		return err
	})
	slices.SortFunc(list, func(a, b master) int { return strings.Compare(a.id, b.id) })
	return list, err
}

// identify asks a master for the number of its keys and the run_id of its process. If the ACL forbids the
// second question, the address identifies the master, and a restart goes unnoticed.
func identify(ctx context.Context, node *redis.Client) (master, error) {
	pipe := node.Pipeline()
	keys, info := pipe.DBSize(ctx), pipe.Info(ctx, "server")
	_, _ = pipe.Exec(ctx) //nolint:errcheck // each command has its own error
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

// cursor is the position of a listing. A master is identified by its run_id, so that a new or restarted
// master is scanned from the beginning, because a cursor of SCAN is valid only in the process that
// returned it.
type cursor struct {
	Done   []string `json:"d,omitempty"` // masters that were scanned completely
	At     string   `json:"a,omitempty"` // the master that is being scanned
	Next   uint64   `json:"n,omitempty"` // next cursor of SCAN
	Looked int64    `json:"l,omitempty"` // approximate number of its keys scanned
}

func readCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return c, ErrCursor
	}
	return c, nil
}

// String returns the cursor as callers see it.
func (c *cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // it contains strings and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// forget removes masters that no longer exist.
func (c *cursor) forget(masters []master) {
	there := func(id string) bool {
		return slices.ContainsFunc(masters, func(m master) bool { return m.id == id })
	}
	c.Done = slices.DeleteFunc(c.Done, func(id string) bool { return !there(id) })
	if !there(c.At) {
		c.begin("")
	}
}

func (c *cursor) begin(id string) { c.At, c.Next, c.Looked = id, 0, 0 }

// master returns the master to scan next; nil if all were scanned.
func (c *cursor) master(masters []master) *master {
	for i := range masters {
		m := &masters[i]
		if c.At == "" && !slices.Contains(c.Done, m.id) {
			c.begin(m.id)
		}
		if c.At != "" && c.At == m.id {
			return m
		}
	}
	return nil
}

// advance records the result of a SCAN and returns how many keys it scanned. SCAN does not report
// that number; when it is done with a master, all keys of the master count as scanned.
func (c *cursor) advance(m *master, next uint64, step int) (looked int64) {
	left := max(m.keys-c.Looked, 0)
	if next == 0 {
		c.Done = append(c.Done, m.id)
		c.begin("")
		return left
	}
	looked = min(int64(step), left)
	c.Next, c.Looked = next, c.Looked+looked
	return looked
}
