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
	for fault, begin := range map[string]func(t *testing.T, b *bed) *redis.Client{
		"limiter is open": func(t *testing.T, b *bed) *redis.Client {
			t.Helper()
			limiter := &breakers{}
			rdb := b.connect(func(o *redis.Options) { o.Limiter = limiter })
			limiter.open.Store(true)
			wantErr(t, rdb.Ping(t.Context()).Err(), errOpen)
			return rdb
		},
		"pool is full": func(t *testing.T, b *bed) *redis.Client {
			t.Helper()
			rdb := b.connect(func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 2, -1 })
			for range 2 {
				go rdb.BLPop(t.Context(), 0, "jobs") // until the server closes
			}
			pass(time.Second)
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
					endsWithinADay(t)
					srv := redistest.New(t)
					srv.Replicas(1, 1)
					b := &bed{t: t, embedded: true, Client: srv.Client(), connect: srv.Client}
					rdb := begin(t, b)
					seen := &renewals{}
					wantAllOf(t, b, locksOn(t, rdb, append(opts, core.WithObserver(seen.observer()))...), seen)
				})
			})
		}
	}
}

// wantAllOf wants all that a client offers for its locks to work at once.
func wantAllOf(t *testing.T, b *bed, locks *core.Client, seen *renewals) {
	t.Helper()
	ctx := t.Context()
	start := time.Now()
	must(t, locks.Ready(ctx))
	held, hold := acquired(t, ctx, locks.Lock("k"))
	holds := []*core.Hold{hold}
	for _, lock := range []core.Lock{
		locks.FencedLock("fenced"), locks.FairLock("fair"), locks.ReadLock("rw"), locks.MultiLock("a", "b"),
		locks.Semaphore("permits", 2).Lock,
	} {
		_, one := acquired(t, ctx, lock)
		holds = append(holds, one)
	}
	wantSoon(t, "acquisitions took %s", start, time.Millisecond)
	pass(3 * core.DefaultWatchdog)
	wantAlive(t, held)
	if seen.good() < 3*3*len(holds) || seen.failure() != nil {
		t.Errorf("%d renewals went well, and one has failed: %v", seen.good(), seen.failure())
	}
	start = time.Now()
	must(t, hold.Refresh(ctx, time.Minute))
	entry, err := locks.Inspect(ctx, "k")
	must(t, err)
	if len(entry.Holders) != 1 {
		t.Errorf("%d holders, want 1", len(entry.Holders))
	}
	must(t, locks.PlainSemaphore("count").AddPermits(ctx, 2))
	wantGot(t, "permits", 2)(locks.PlainSemaphore("count").Available(ctx))
	for _, h := range holds {
		released(t, h)
	}
	_, lost := acquired(t, ctx, locks.Lock("lost"))
	wantGot(t, "forced", true)(locks.Lock("lost").ForceRelease(ctx))
	wantErr(t, lost.Release(ctx), core.ErrLost)
	wantSoon(t, "the other operations took %s", start, time.Millisecond)

	_, other := acquired(t, ctx, b.locks().Lock("contended"))
	at := acquiredAt(t, locks, "contended")
	pass(90 * time.Millisecond)
	start = time.Now()
	released(t, other)
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
