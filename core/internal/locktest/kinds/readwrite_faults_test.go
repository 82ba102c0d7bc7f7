package kinds_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Each life performs all operations, and a script loses a reply at a random place. Redis has the holds that the
// holders expect, no operation fails, and nothing is left.
func TestReadWriteFault_LostReplies(t *testing.T) {
	t.Parallel()
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	const clients = 4 // each on a separate server; a life mostly waits
	var cases []locktest.Subtest
	for client := range clients {
		cases = append(cases, locktest.Subtest{Name: fmt.Sprintf("client %d", client), Body: func(t *testing.T) { loseReadWriteReplies(t, rounds/clients) }})
	}
	locktest.Together(t, cases...)
}

func loseReadWriteReplies(t *testing.T, rounds int) {
	t.Helper()
	server := redisserver.Start(t)
	proxy := faultproxy.New(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	defer rdb.Close()
	locks, err := core.New(rdb, locktest.Patient)
	locktest.Must(t, err)
	defer locktest.MustClose(t, locks)
	b := &locktest.Redis{T: t, Client: server.Client()}
	lives := []func(b *locktest.Redis, locks *core.Client, key string){readersLife, writersLife}
	for round := range rounds {
		const commands = 6 // of each life without a fault, at least
		nth := 1 + rand.N(commands)
		rule := proxy.DropReply(faultproxy.Nth(nth, faultproxy.Command("EVALSHA")))
		lives[round%2](b, locks, fmt.Sprintf("life:%d", round))
		rule.Remove()
		locktest.WithinASecond(t, "nothing left", func() bool { return len(b.Keys(t.Context(), "*").Val()) == 0 })
		if t.Failed() {
			t.Fatalf("round %d, with the reply of EVALSHA %d lost (hits: %d)", round, nth, rule.Hits())
		}
	}
}

// opts give an operation enough time beside faults.
var opts = []core.AcquireOption{core.WaitTime(10 * time.Second), core.LeaseTime(time.Minute)}

func readersLife(b *locktest.Redis, locks *core.Client, key string) {
	lock := locks.ReadLock(key)
	ctx, one := locktest.MustAcquire(b.T, context.Background(), lock, opts...)
	_, again := locktest.MustAcquire(b.T, ctx, lock, opts...)
	_, two := locktest.MustAcquire(b.T, context.Background(), lock, opts...)
	wantReaders(b, key, map[string]int{one.Field(): 2, two.Field(): 1})
	locktest.Must(b.T, one.Refresh(ctx, 30*time.Second))
	locktest.MustRelease(b.T, again)
	wantReaders(b, key, map[string]int{one.Field(): 1, two.Field(): 1})
	locktest.Must(b.T, two.Refresh(ctx, 10*time.Second))
	locktest.MustRelease(b.T, one)
	wantReaders(b, key, map[string]int{two.Field(): 1})
	locktest.MustRelease(b.T, two)
}

func writersLife(b *locktest.Redis, locks *core.Client, key string) {
	lock := locks.WriteLock(key)
	ctx, one := locktest.MustAcquire(b.T, context.Background(), lock, opts...)
	_, again := locktest.MustAcquire(b.T, ctx, lock, opts...)
	_, r := locktest.MustAcquire(b.T, ctx, locks.ReadLock(key), opts...)
	wantReaders(b, key, map[string]int{one.Field(): 2, r.Field(): 1})
	locktest.Must(b.T, one.Refresh(ctx, 30*time.Second))
	locktest.MustRelease(b.T, again)
	_, r = r.Handover()
	next := locktest.GoAcquire(context.Background(), lock, opts...)
	locktest.AwaitWaiters(b.T, locks, 1)
	locktest.MustRelease(b.T, one)
	wantReaders(b, key, map[string]int{r.Field(): 1})
	locktest.MustRelease(b.T, r)
	o := locktest.Got(b.T, next)
	last := locktest.GoAcquire(context.Background(), lock, opts...)
	locktest.AwaitWaiters(b.T, locks, 1)
	locktest.MustRelease(b.T, o.Hold)
	o = locktest.Got(b.T, last)
	wantReaders(b, key, map[string]int{o.Hold.Field(): 1})
	locktest.MustRelease(b.T, o.Hold)
}

// wantReaders wants these holders within a second, in which abandoned attempts are cleared up, and as many timeout
// keys as the readers have holds.
func wantReaders(b *locktest.Redis, key string, want map[string]int) {
	b.T.Helper()
	locktest.WithinASecond(b.T, fmt.Sprintf("redis has %v", want), func() bool {
		hash := b.HGetAll(context.Background(), key).Val()
		if hash["mode"] == "write" && len(want) > 1 {
			delete(hash, "interlock_until")
		}
		keys := int64(0)
		for field, count := range want {
			if hash[field] != fmt.Sprint(count) {
				return false
			}
			for n := 1; n <= count; n++ {
				keys += b.Exists(context.Background(), locktest.ReaderTimeoutOf(key, field, fmt.Sprint(n))).Val()
			}
		}
		all := int64(0)
		for field, count := range want {
			if field[len(field)-1] != 'e' { // of ":write"
				all += int64(count)
			}
		}
		return len(hash) == len(want)+1 && keys == all && len(b.Keys(context.Background(), locktest.Tagged(key)+":*:rwlock_timeout:*").Val()) == int(all)
	})
}

// The abandoned attempt of a reader lands late, beside other readers or before a writer. The client clears it up and
// frees no other holder.
func TestReadWriteFault_GhostReader(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks, other := r.Behind(locktest.Patient), r.Beside()
	b := &locktest.Redis{T: t, Client: r.Client}
	ghost := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "read/acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.ReadLock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	locktest.WantErr(t, err, context.DeadlineExceeded)
	<-ghost.Hit()
	living, hold := locktest.MustAcquire(t, t.Context(), other.ReadLock("k"))
	locktest.Land(r.T, ghost)
	wantReaders(b, "k", map[string]int{hold.Field(): 1})
	locktest.WantAlive(t, living)
	start := time.Now()
	writing := locktest.GoAcquire(t.Context(), other.WriteLock("k"))
	locktest.AwaitWaiters(t, other, 1)
	locktest.MustRelease(t, hold)
	w := locktest.Got(t, writing)
	locktest.WantAtMost(t, "the writer", time.Since(start), time.Second)
	locktest.MustRelease(t, w.Hold)
	locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
}

// The abandoned attempt of a writer lands late, alone or when another caller has the lock, and so does the attempt of
// a reader inside a writer.
func TestReadWriteFault_GhostWriter(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		r := locktest.NewProxied(t)
		locks := r.Behind(locktest.Patient)
		base, lock, name := t.Context(), locks.WriteLock("k"), "write/acquire"
		var outer *core.Hold
		if inside {
			base, outer = locktest.MustAcquire(t, t.Context(), lock)
			lock, name = locks.ReadLock("k"), "read/acquire"
		}
		ghost := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, name, "k")))
		ctx, cancel := context.WithTimeout(base, 30*time.Millisecond)
		_, _, err := lock.Acquire(ctx, core.LeaseTime(time.Minute))
		cancel()
		locktest.WantErr(t, err, context.DeadlineExceeded)
		<-ghost.Hit()
		locktest.Land(r.T, ghost)
		if inside {
			wantReaders((&locktest.Redis{T: t, Client: r.Client}), "k", map[string]int{outer.Field(): 1})
			locktest.MustRelease(t, outer)
		}
		locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
	}
}

// A release, a re-entry and a renewal that land after the end of the hold bring nothing back.
func TestReadWriteFault_LateLanding(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"read/sethold", "read/renew", "read/refresh", "read/release"} {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(core.WithWatchdog(6*time.Second), locktest.Patient) // a slow machine renews long before the end of the lease
			b := &locktest.Redis{T: t, Client: r.Client}
			lock := locks.ReadLock("k")
			late := r.Proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, name, "k")))
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
			go func() {
				switch name {
				case "read/sethold":
					_, _, _ = lock.Acquire(ctx)
				case "read/refresh":
					_ = hold.Refresh(ctx, time.Hour)
				case "read/release":
					_ = hold.Release(ctx)
				}
			}()
			<-late.Hit()
			b.Del(t.Context(), "k", locktest.ReaderTimeoutOf("k", hold.Field(), "1"))
			_, other := locktest.MustAcquire(t, t.Context(), r.Beside().ReadLock("k"))
			locktest.Land(r.T, late)
			wantReaders(b, "k", map[string]int{other.Field(): 1})
			locktest.MustRelease(t, other)
			locktest.AwaitEnd(t, ctx)
			locktest.WithinASecond(t, "nothing left", func() bool { return len(r.Client.Keys(t.Context(), "*").Val()) == 0 })
		})
	}
}
