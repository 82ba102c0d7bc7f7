package core_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// sort is a kind of lock, as far as the faults need to know that hit every kind.
type sort struct {
	scripts string // what its scripts are called in front
	servers int
	lock    func(clients []*core.Client) core.Lock
	rival   func(clients []*core.Client) core.Lock // whom a holder keeps out
	enters  bool                                   // again
	permit  bool
}

// first is the lock of the only client.
func first(lock func(c *core.Client) core.Lock) func([]*core.Client) core.Lock {
	return func(clients []*core.Client) core.Lock { return lock(clients[0]) }
}

// pool is the name of the lock, whatever the kind.
const pool = "pool"

var (
	readPool  = first(func(c *core.Client) core.Lock { return c.ReadLock(pool) })
	writePool = first(func(c *core.Client) core.Lock { return c.WriteLock(pool) })
	plainPool = first(func(c *core.Client) core.Lock { return c.Lock(pool) })
	fairPool  = first(func(c *core.Client) core.Lock { return c.FairLock(pool) })
	onePermit = first(func(c *core.Client) core.Lock { return c.Semaphore(pool, 1).Lock })
	redPool   = func(clients []*core.Client) core.Lock { return core.Redlock(pool, clients...) }
)

var sorts = map[string]sort{
	"plain":   {servers: 1, lock: plainPool, rival: plainPool, enters: true},
	"fair":    {scripts: "fair/", servers: 1, lock: fairPool, rival: fairPool, enters: true},
	"read":    {scripts: "read/", servers: 1, lock: readPool, rival: writePool, enters: true},
	"write":   {scripts: "write/", servers: 1, lock: writePool, rival: writePool, enters: true},
	"permit":  {scripts: "semaphore/", servers: 1, lock: onePermit, rival: onePermit, permit: true},
	"redlock": {servers: 3, lock: redPool, rival: redPool, enters: true},
}

// world is the servers of a lock of some kind, with a process behind proxies and one beside it.
type world struct {
	sort

	t       *testing.T
	servers []*island
	clients []*core.Client
	mine    core.Lock
	beside  []*core.Client
	other   core.Lock // of the process beside, and kept out by mine
}

// eachSort runs a test for every kind of lock, in a bubble.
func eachSort(t *testing.T, body func(t *testing.T, w *world), opts ...core.Option) {
	t.Helper()
	for name, s := range sorts {
		parallel(t, name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { body(t, newWorld(t, s, opts...)) })
		})
	}
}

func newWorld(t *testing.T, s sort, opts ...core.Option) *world {
	t.Helper()
	w := &world{sort: s, t: t, servers: islands(t, s.servers)}
	for _, srv := range w.servers {
		for _, source := range scriptSources(t) {
			must(t, srv.ScriptLoad(t.Context(), source).Err())
		}
		w.beside = append(w.beside, srv.locks())
	}
	w.clients = process(t, w.servers, opts...)
	for _, c := range w.clients {
		must(t, c.Ready(t.Context()))
	}
	w.mine, w.other = s.lock(w.clients), s.rival(w.beside)
	return w
}

// inject breaks something on the way to every server.
func (w *world) inject(f fault, match func() faultproxy.Match) (rules []*faultproxy.Rule) {
	w.t.Helper()
	for _, s := range w.servers {
		rules = append(rules, f(s.proxy, match()))
	}
	return rules
}

// op matches one of the kind's operations, once.
func (w *world) op(name string) func() faultproxy.Match {
	return func() faultproxy.Match { return faultproxy.Once(script(w.t, w.scripts+name)) }
}

// let lets go what rules hold, and waits until that has landed.
func let(rules []*faultproxy.Rule) {
	for _, r := range rules {
		r.Remove()
	}
	pass(100 * time.Millisecond)
}

func (w *world) hole(on bool) {
	for _, s := range w.servers {
		s.proxy.BlackHole(on)
	}
}

// flush deletes everything, without a message.
func (w *world) flush() {
	for _, s := range w.servers {
		must(w.t, s.FlushDB(context.Background()).Err())
	}
}

// there reports on how many servers somebody has the lock.
func (w *world) there() int {
	if w.permit {
		return held(w.servers, leases)
	}
	return held(w.servers, pool)
}

// wantNothing wants nothing of the lock in Redis: of a semaphore its one permit.
func (w *world) wantNothing(when string) {
	w.t.Helper()
	for i, s := range w.servers {
		keys := s.Keys(context.Background(), "*").Val()
		if w.permit {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key == pool })
			if n := s.Get(context.Background(), pool).Val(); n != "1" && n != "" {
				w.t.Errorf("%s: %s permits are free, want 1", when, n)
			}
		}
		if len(keys) > 0 {
			w.t.Errorf("%s: left on server %d: %q", when, i, keys)
		}
	}
}

// wantTaken wants others to be kept out.
func (w *world) wantTaken() {
	w.t.Helper()
	_, hold, err := w.other.Acquire(context.Background(), core.WaitTime(0))
	if err == nil {
		w.t.Error("another one has it")
		released(w.t, hold)
	}
	wantErr(w.t, err, core.ErrNotAcquired)
}

// wantFree wants others to get it at once, and nothing to be left after them.
func (w *world) wantFree() {
	w.t.Helper()
	_, hold := acquired(w.t, context.Background(), w.other, core.WaitTime(time.Second), core.LeaseTime(time.Minute))
	released(w.t, hold)
	pass(time.Second)
	w.wantNothing("free")
}
