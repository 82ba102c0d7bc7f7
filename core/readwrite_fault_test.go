package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// Every script loses a reply at a random place of a life with all operations: each hold in Redis is
// what its holder believes, no operation fails, and nothing is left.
func TestReadWriteFault_LostReplies(t *testing.T) {
	t.Parallel()
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	const clients = 4 // each with a server of its own; a life mostly waits
	var cases []oneOf
	for client := range clients {
		cases = append(cases, oneOf{fmt.Sprintf("client %d", client), func(t *testing.T) { loseReadWriteReplies(t, rounds/clients) }})
	}
	together(t, cases...)
}

func loseReadWriteReplies(t *testing.T, rounds int) {
	t.Helper()
	server := redisserver.Start(t)
	proxy := faultproxy.New(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	defer rdb.Close()
	locks, err := core.New(rdb, patient)
	must(t, err)
	defer faultClose(t, locks)
	b := &bed{t: t, Client: server.Client()}
	lives := []func(b *bed, locks *core.Client, key string){readersLife, writersLife}
	for round := range rounds {
		const commands = 6 // of each undisturbed life, at least
		nth := 1 + rand.N(commands)
		rule := proxy.DropReply(faultproxy.Nth(nth, faultproxy.Command("EVALSHA")))
		lives[round%2](b, locks, fmt.Sprintf("life:%d", round))
		rule.Remove()
		within(t, "nothing left", func() bool { return len(b.Keys(t.Context(), "*").Val()) == 0 })
		if t.Failed() {
			t.Fatalf("round %d, with the reply of EVALSHA %d lost (hits: %d)", round, nth, rule.Hits())
		}
	}
}

// opts give an operation enough time beside faults.
var opts = []core.AcquireOption{core.WaitTime(10 * time.Second), core.LeaseTime(time.Minute)}

func readersLife(b *bed, locks *core.Client, key string) {
	lock := locks.ReadLock(key)
	ctx, one := acquired(b.t, context.Background(), lock, opts...)
	_, again := acquired(b.t, ctx, lock, opts...)
	_, two := acquired(b.t, context.Background(), lock, opts...)
	b.wantLife(key, map[string]int{one.Field(): 2, two.Field(): 1})
	must(b.t, one.Refresh(ctx, 30*time.Second))
	released(b.t, again)
	b.wantLife(key, map[string]int{one.Field(): 1, two.Field(): 1})
	must(b.t, two.Refresh(ctx, 10*time.Second))
	released(b.t, one)
	b.wantLife(key, map[string]int{two.Field(): 1})
	released(b.t, two)
}

func writersLife(b *bed, locks *core.Client, key string) {
	lock := locks.WriteLock(key)
	ctx, one := acquired(b.t, context.Background(), lock, opts...)
	_, again := acquired(b.t, ctx, lock, opts...)
	_, r := acquired(b.t, ctx, locks.ReadLock(key), opts...)
	b.wantLife(key, map[string]int{one.Field(): 2, r.Field(): 1})
	must(b.t, one.Refresh(ctx, 30*time.Second))
	released(b.t, again)
	_, r = r.Handover()
	next := acquiring(context.Background(), lock, opts...)
	waiters(b.t, locks, 1)
	released(b.t, one)
	b.wantLife(key, map[string]int{r.Field(): 1})
	released(b.t, r)
	o := got(b.t, next)
	last := acquiring(context.Background(), lock, opts...)
	waiters(b.t, locks, 1)
	released(b.t, o.hold)
	o = got(b.t, last)
	b.wantLife(key, map[string]int{o.hold.Field(): 1})
	released(b.t, o.hold)
}

// wantLife wants these holders within a second, when abandoned attempts are cleared up, and as many
// timeout keys as their readers have holds.
func (b *bed) wantLife(key string, want map[string]int) {
	b.t.Helper()
	within(b.t, fmt.Sprintf("redis has %v", want), func() bool {
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
				keys += b.Exists(context.Background(), timeoutOf(key, field, fmt.Sprint(n))).Val()
			}
		}
		all := int64(0)
		for field, count := range want {
			if field[len(field)-1] != 'e' { // of ":write"
				all += int64(count)
			}
		}
		return len(hash) == len(want)+1 && keys == all && len(b.Keys(context.Background(), inSlotOf(key)+":*:rwlock_timeout:*").Val()) == int(all)
	})
}

// A reader's attempt that is abandoned lands late, beside readers that live, and before a writer:
// it is cleared up, and nobody else is freed.
func TestReadWriteFault_GhostReader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks, other := r.locks(patient), r.beside()
	b := &bed{t: t, Client: r.direct}
	ghost := r.proxy.HoldRequest(faultproxy.Once(scriptOn(t, "read/acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.ReadLock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	wantErr(t, err, context.DeadlineExceeded)
	<-ghost.Hit()
	living, hold := acquired(t, t.Context(), other.ReadLock("k"))
	r.land(ghost)
	b.wantLife("k", map[string]int{hold.Field(): 1})
	wantAlive(t, living)
	start := time.Now()
	writing := acquiring(t.Context(), other.WriteLock("k"))
	waiters(t, other, 1)
	released(t, hold)
	w := got(t, writing)
	wantAtMost(t, "the writer", time.Since(start), time.Second)
	released(t, w.hold)
	within(t, "nothing left", func() bool { return len(r.direct.Keys(t.Context(), "*").Val()) == 0 })
}

// So does a writer's, alone, or when it is too late for it; and that of a reader inside of a writer.
func TestReadWriteFault_GhostWriter(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		r := newRig(t)
		locks := r.locks(patient)
		base, lock, name := t.Context(), locks.WriteLock("k"), "write/acquire"
		var outer *core.Hold
		if inside {
			base, outer = acquired(t, t.Context(), lock)
			lock, name = locks.ReadLock("k"), "read/acquire"
		}
		ghost := r.proxy.HoldRequest(faultproxy.Once(scriptOn(t, name, "k")))
		ctx, cancel := context.WithTimeout(base, 30*time.Millisecond)
		_, _, err := lock.Acquire(ctx, core.LeaseTime(time.Minute))
		cancel()
		wantErr(t, err, context.DeadlineExceeded)
		<-ghost.Hit()
		r.land(ghost)
		if inside {
			(&bed{t: t, Client: r.direct}).wantLife("k", map[string]int{outer.Field(): 1})
			released(t, outer)
		}
		within(t, "nothing left", func() bool { return len(r.direct.Keys(t.Context(), "*").Val()) == 0 })
	}
}

// A release, a re-entry and a renewal that land when the hold is over bring nothing back.
func TestReadWriteFault_LateLanding(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"read/sethold", "read/renew", "read/refresh", "read/release"} {
		parallel(t, name, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(core.WithWatchdog(6*time.Second), patient) // a renewal is due long before a slow machine loses the lease
			b := &bed{t: t, Client: r.direct}
			lock := locks.ReadLock("k")
			late := r.proxy.HoldRequest(faultproxy.Once(scriptOn(t, name, "k")))
			ctx, hold := acquired(t, t.Context(), lock)
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
			b.Del(t.Context(), "k", timeoutOf("k", hold.Field(), "1"))
			_, other := acquired(t, t.Context(), r.beside().ReadLock("k"))
			r.land(late)
			b.wantLife("k", map[string]int{other.Field(): 1})
			released(t, other)
			awaitEnd(t, ctx)
			within(t, "nothing left", func() bool { return len(r.direct.Keys(t.Context(), "*").Val()) == 0 })
		})
	}
}
