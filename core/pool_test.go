package core_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/redistest"
)

// breakers is a Limiter of the business: while it is open, it lets nothing through.
type breakers struct{ open atomic.Bool }

var errOpen = errors.New("the circuit breaker of the business is open")

func (b *breakers) Allow() error {
	if b.open.Load() {
		return errOpen
	}
	return nil
}

func (*breakers) ReportResult(error) {}

// The Limiter and the pool of the caller's client are for the commands of the business. When the former is open, or
// the latter is full, locks are acquired, renewed and released, waiters are woken by messages, and whatever else a
// Client offers for a lock works.
func TestNew_BesideThePoolOfTheCaller(t *testing.T) {
	t.Parallel()
	for fault, begin := range map[string]func(t *testing.T, b *locktest.Redis) *redis.Client{
		"limiter is open": func(t *testing.T, b *locktest.Redis) *redis.Client {
			t.Helper()
			limiter := &breakers{}
			rdb := b.Connect(func(o *redis.Options) { o.Limiter = limiter })
			limiter.open.Store(true)
			locktest.WantErr(t, rdb.Ping(t.Context()).Err(), errOpen)
			return rdb
		},
		"pool is full": func(t *testing.T, b *locktest.Redis) *redis.Client {
			t.Helper()
			rdb := b.Connect(func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 2, -1 })
			for range 2 {
				go rdb.BLPop(t.Context(), 0, "jobs") // until the server closes
			}
			locktest.Pass(time.Second)
			if stats := rdb.PoolStats(); stats.TotalConns != 2 || stats.IdleConns != 0 {
				t.Fatalf("%d connections, %d idle: want 2 in use", stats.TotalConns, stats.IdleConns)
			}
			return rdb
		},
	} {
		for with, opts := range map[string][]core.Option{
			"master alone": nil, "replicas": {core.WithReplicaAcks(core.AcksAll, time.Second)},
		} {
			t.Run(fault+"/"+with, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					locktest.EndWithinADay(t)
					srv := redistest.New(t)
					srv.Replicas(1, 1)
					b := &locktest.Redis{T: t, Embedded: srv, Client: srv.Client(), Connect: srv.Client}
					rdb := begin(t, b)
					seen := &locktest.Renewals{}
					wantAllOf(t, b, locktest.NewClient(t, rdb, append(opts, core.WithObserver(seen.Observer()))...), seen)
				})
			})
		}
	}
}

// wantAllOf wants all that a client offers for its locks to work at once.
func wantAllOf(t *testing.T, b *locktest.Redis, locks *core.Client, seen *locktest.Renewals) {
	t.Helper()
	ctx := t.Context()
	start := time.Now()
	locktest.Must(t, locks.Ready(ctx))
	held, hold := locktest.MustAcquire(t, ctx, locks.Lock("k"))
	holds := []*core.Hold{hold}
	for _, lock := range []core.Lock{
		locks.FencedLock("fenced"), locks.FairLock("fair"), locks.ReadLock("rw"), locks.MultiLock("a", "b"),
		locks.Semaphore("permits", 2).Lock,
	} {
		_, one := locktest.MustAcquire(t, ctx, lock)
		holds = append(holds, one)
	}
	locktest.WantSoon(t, "acquisitions took %s", start, time.Millisecond)
	locktest.Pass(3 * core.DefaultWatchdog)
	locktest.WantAlive(t, held)
	if seen.Good() < 3*3*len(holds) || seen.Failure() != nil {
		t.Errorf("%d renewals went well, and one has failed: %v", seen.Good(), seen.Failure())
	}
	start = time.Now()
	locktest.Must(t, hold.Refresh(ctx, time.Minute))
	entry, err := locks.Inspect(ctx, "k")
	locktest.Must(t, err)
	if len(entry.Holders) != 1 {
		t.Errorf("%d holders, want 1", len(entry.Holders))
	}
	locktest.Must(t, locks.PlainSemaphore("count").AddPermits(ctx, 2))
	locktest.WantGot(t, "permits", 2)(locks.PlainSemaphore("count").Available(ctx))
	for _, h := range holds {
		locktest.MustRelease(t, h)
	}
	_, lost := locktest.MustAcquire(t, ctx, locks.Lock("lost"))
	locktest.WantGot(t, "forced", true)(locks.Lock("lost").ForceRelease(ctx))
	locktest.WantErr(t, lost.Release(ctx), core.ErrLost)
	locktest.WantSoon(t, "the other operations took %s", start, time.Millisecond)

	_, other := locktest.MustAcquire(t, ctx, b.Locks().Lock("contended"))
	at := locktest.AcquiredAt(t, locks, "contended")
	locktest.Pass(90 * time.Millisecond)
	start = time.Now()
	locktest.MustRelease(t, other)
	if took := (<-at).Sub(start); took > time.Millisecond {
		t.Errorf("a waiter has the lock %s after its release: no message has come", took)
	}
}

// dialed makes a client like rdb, changed by opts, and counts its connections.
func dialed(t *testing.T, rdb *redis.Client, opts ...func(*redis.Options)) (*atomic.Int64, *redis.Client) {
	t.Helper()
	var made atomic.Int64
	o := *rdb.Options()
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		made.Add(1)
		return dial(ctx, network, addr)
	}
	for _, opt := range opts {
		opt(&o)
	}
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return &made, client
}
