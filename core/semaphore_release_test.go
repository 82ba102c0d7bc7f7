package core_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A permit is given back by its id, whoever holds it: Redisson, with a lease or without, another
// client, or this one. Who listens is told how many are free, and the holder that its permit is lost.
func TestPermitSemaphore_ReleasePermit(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		locks := b.locks()
		pool := locks.Semaphore("pool", 0)
		must(t, pool.SetPermits(t.Context(), 4))
		sub := b.subscribe(t, semaphoreChannel)
		forGood, leased := []byte("\x00\xff{}:\n\r\x7f0123456\x80"), []byte("0123456789abcdef")
		b.javaAcquire(forGood, neverExpires)
		b.javaAcquire(leased, "99999999999999")
		ctx, mine := acquired(t, t.Context(), pool.Lock, core.LeaseTime(time.Hour))
		_, other := acquired(t, t.Context(), b.locks().Semaphore("pool", 0).Lock, core.LeaseTime(time.Hour))
		for i, id := range []string{hex.EncodeToString(forGood), strings.ToUpper(hex.EncodeToString(leased)), other.Field(), mine.Field()} {
			must(t, pool.ReleasePermit(t.Context(), id))
			sub.want(string(rune('1' + i)))
			b.wantPermits(i+1, 3-i)
			wantErr(t, pool.ReleasePermit(t.Context(), id), core.ErrNotHeld)
			b.wantPermits(i+1, 3-i)
		}
		awaitEnd(t, ctx)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, mine.Release(t.Context()), core.ErrLost)
		wantErr(t, other.Release(t.Context()), core.ErrLost)
		wantSame(t, "Redisson's release of what was given back", b.javaRelease(leased), 0)
		b.wantPermits(4, 0)
	})
}

// A permit whose lease is over is given back, too, but was not held any more: as with Redisson. One
// that was never out is not held, and nothing is remembered of it.
func TestPermitSemaphore_ReleasePermitThatIsNotHeld(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		pool := b.locks().Semaphore("pool", 0)
		must(t, pool.SetPermits(t.Context(), 1))
		over := []byte("0123456789abcdef")
		b.javaAcquire(over, "1")
		wantErr(t, pool.ReleasePermit(t.Context(), hex.EncodeToString(over)), core.ErrNotHeld)
		b.wantPermits(1, 0)
		wantErr(t, pool.ReleasePermit(t.Context(), strings.Repeat("0", 32)), core.ErrNotHeld)
		b.wantPermits(1, 0)
		for _, id := range []string{"", "7", strings.Repeat("0", 31), strings.Repeat("0", 33), strings.Repeat("g", 32), strings.Repeat("0", 64)} {
			wantErr(t, pool.ReleasePermit(t.Context(), id), core.ErrInvalid)
		}
		b.wantPermits(1, 0)
		must(t, pool.AddPermits(t.Context(), 1)) // which has those before it forgotten
		if ops := b.ZRange(t.Context(), "{pool}:interlock_ops", 0, -1).Val(); len(ops) != 1 {
			t.Errorf("remembered are %q, want the last operation", ops)
		}
		b.HSet(t.Context(), "hash", "field", 1)
		wantErr(t, b.locks().Semaphore("hash", 0).ReleasePermit(t.Context(), strings.Repeat("0", 32)), core.ErrUnavailable)
	})
}

// With fewer permits than are out, one that comes back is held by nobody, and nobody is told.
func TestPermitSemaphore_ReleasePermitOfFewer(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		pool := b.locks().Semaphore("pool", 0)
		must(t, pool.SetPermits(t.Context(), 2))
		_, one := acquired(t, t.Context(), pool.Lock)
		_, two := acquired(t, t.Context(), pool.Lock)
		must(t, pool.SetPermits(t.Context(), 1))
		sub := b.subscribe(t, semaphoreChannel)
		must(t, pool.ReleasePermit(t.Context(), one.Field()))
		b.wantPermits(0, 1)
		must(t, pool.ReleasePermit(t.Context(), two.Field()))
		sub.want("1")
		b.wantPermits(1, 0)
	})
}

// The reply or the request of a release by id is lost: it is executed once, and its caller is told
// what became of it.
func TestPermitSemaphore_ReleasePermitLostReplies(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"reply", "request"} {
		parallelBeds(t, lost, func(t *testing.T, bed *bed) {
			b := permits{bed}
			proxy, rdb := faultproxy.Around(t, b.Client)
			pool := locksOn(t, rdb, patient).Semaphore("pool", 0)
			must(t, pool.SetPermits(t.Context(), 2))
			drop := proxy.DropReply
			if lost == "request" {
				drop = proxy.DropRequest
			}
			_, hold := acquired(t, t.Context(), b.locks().Semaphore("pool", 0).Lock)
			first := drop(faultproxy.Nth(1, scripts))
			must(t, pool.ReleasePermit(t.Context(), hold.Field()))
			b.wantPermits(2, 0)
			second := drop(faultproxy.Nth(1, scripts))
			wantErr(t, pool.ReleasePermit(t.Context(), hold.Field()), core.ErrNotHeld)
			b.wantPermits(2, 0)
			if first.Hits() != 1 || second.Hits() != 1 {
				t.Errorf("%d and %d were lost, want one of each", first.Hits(), second.Hits())
			}
		})
	}
}

// It wakes who waits in another client at once.
func TestPermitSemaphore_ReleasePermitWakes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, bed *bed) {
		b := permits{bed}
		locks := b.locks()
		pool := locks.Semaphore("pool", 1)
		must(t, locks.Semaphore("pool", 0).SetPermits(t.Context(), 1))
		id := []byte("0123456789abcdef")
		b.javaAcquire(id, neverExpires)
		got := acquiring(context.Background(), b.locks().Semaphore("pool", 1).Lock)
		pass(1500 * time.Millisecond)
		start := time.Now()
		must(t, pool.ReleasePermit(t.Context(), hex.EncodeToString(id)))
		o := <-got
		must(t, o.err)
		wantSoon(t, "woken after %s", start, 5*time.Millisecond)
		released(t, o.hold)
		b.wantPermits(1, 0)
	})
}
