package outages_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestLostReplies_OfManyCallers loses one reply at a random place in the life of a hold: acquire, re-entry, refresh,
// renewal, inner release, hand-off, release. Redis always has the count that the holder expects, no operation fails,
// and no key is left after a second.
func TestLostReplies_OfManyCallers(t *testing.T) {
	t.Parallel()
	rounds := 1000
	if testing.Short() {
		rounds = 48
	}
	server := redisserver.Start(t)
	const clients = 8 // a life mostly waits
	locktest.Concurrently(clients, func(client int) { loseReplies(t, server, client, rounds/clients) })
}

// loseReplies runs lives with a separate client, each of which loses one reply.
func loseReplies(t *testing.T, server *redisserver.Server, client, rounds int) {
	t.Helper()
	proxy := faultproxy.New(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	defer rdb.Close()
	renewals := &renewalCounter{}
	locks, err := core.New(rdb, core.WithWatchdog(6*time.Second), locktest.Patient, core.WithObserver(renewals.observer()))
	if err != nil {
		t.Error(err)
		return
	}
	defer locktest.MustClose(t, locks)

	direct := server.Client()
	const commands = 6 // of a life without a fault, at least
	for round := range rounds {
		nth := 1 + rand.N(commands)
		rule := proxy.DropReply(faultproxy.Nth(nth, faultproxy.Command("EVALSHA")))
		key := fmt.Sprintf("life:%d:%d", client, round)
		life{t: t, locks: locks, direct: direct, key: key, renew: round%40 == 0, renewals: renewals}.run()
		rule.Remove()
		if rule.Hits() == 0 {
			t.Error("no reply was lost")
		}
		if t.Failed() {
			t.Errorf("%s, with the reply of EVALSHA %d lost (hits: %d)", key, nth, rule.Hits())
			return
		}
	}
}

// life performs all operations on one key.
type life struct {
	t      *testing.T
	locks  *core.Client
	direct *redis.Client
	key    string
	renew  bool // wait for a renewal

	renewals *renewalCounter
}

// renewalCounter counts renewals that Redis confirmed.
type renewalCounter struct{ atomic.Int64 }

func (c *renewalCounter) observer() *core.Observer { return &core.Observer{Renewal: c.observeRenewal} }

func (c *renewalCounter) observeRenewal(_ context.Context, r core.Renewal) {
	if r.Err == nil {
		c.Add(1)
	}
}

func (l life) run() {
	ctx := l.t.Context()
	lock := l.locks.Lock(l.key)
	opts := []core.AcquireOption{core.WaitTime(30 * time.Second), core.LeaseTime(30 * time.Second)}
	if l.renew {
		opts = opts[:1]
	}
	outerCtx, outer, err := lock.Acquire(ctx, opts...)
	if err != nil {
		l.t.Errorf("acquire: %v", err)
		return
	}
	l.check("acquire", outer, 1)
	_, inner, err := lock.Acquire(outerCtx, opts...)
	if err != nil {
		l.t.Errorf("re-entry: %v", err)
		return
	}
	l.check("re-entry", outer, 2)
	if l.renew {
		before := l.renewals.Load()
		l.await("renewed", func() bool { return l.renewals.Load() > before })
		l.check("renewal", outer, 2)
	}
	l.must("inner release", inner.Release(ctx))
	l.check("inner release", outer, 1)
	if !l.renew {
		l.must("refresh", outer.Refresh(ctx, 20*time.Second))
		l.check("refresh", outer, 1)
	}
	next := make(chan *core.Hold)
	go func() {
		_, hold, err := lock.Acquire(ctx, opts...)
		l.must("waiting acquire", err)
		next <- hold
	}()
	l.await("queued", func() bool { return l.locks.Stats().Waiters == 1 })
	l.must("release", outer.Release(ctx))
	hold := <-next
	if hold == nil {
		return
	}
	l.check("hand-off", hold, 1)
	l.must("last release", hold.Release(ctx))
	locktest.WithinASecond(l.t, "no key left", func() bool { return l.direct.Exists(context.Background(), l.key).Val() == 0 })
}

// await waits for a step of the life.
func (l life) await(what string, ok func() bool) {
	for end := time.Now().Add(locktest.HangTimeout); !ok(); time.Sleep(time.Millisecond) { // a poll with a bound
		if time.Now().After(end) {
			l.t.Errorf("never: %s", what)
			return
		}
	}
}

func (l life) must(what string, err error) {
	if err != nil {
		l.t.Errorf("%s: %v", what, err)
	}
}

// check compares the count in Redis with the count that the holder expects.
func (l life) check(what string, hold *core.Hold, count int) {
	got := l.direct.HGetAll(context.Background(), l.key).Val()
	if len(got) != 1 || got[hold.Field()] != fmt.Sprint(count) {
		l.t.Errorf("after %s: redis has %v, want {%s: %d}", what, got, hold.Field(), count)
	}
}
