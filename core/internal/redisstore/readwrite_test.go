package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestRead_Acquire_Layout(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.reads(alice, time.Minute)
		for range 2 { // executed twice
			b.reads(bob, 30*time.Second)
		}
		b.wantHolders(key, map[string]string{"mode": "read", alice: "1", bob: "1"})
		b.wantKeys(key, timeoutKey(alice, "1"), timeoutKey(bob, "1"))
		b.wantAround(key, time.Minute)
		b.wantAround(timeoutKey(alice, "1"), time.Minute)
		b.wantAround(timeoutKey(bob, "1"), 30*time.Second)
	})
}

// A key that already has a hash tag gets no second one.
func TestRead_Acquire_TaggedKey(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		c := redisstore.Claim{Kind: kinds.Read, Key: "order:{42}", Field: alice}
		b.gets(c, redisstore.Terms{Lease: time.Minute})
		b.wantKeys("order:{42}", "order:{42}:"+alice+":rwlock_timeout:1")
		if got := c.Kind.Channel(c.Key); got != "redisson_rwlock:order:{42}" {
			t.Errorf("channel %q", got)
		}
		b.lets(c, false)
		b.wantKeys()
	})
}

func TestWrite_Acquire_Layout(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		for range 2 {
			b.writes(writer, time.Minute)
		}
		b.wantHolders(key, map[string]string{"mode": "write", writer: "1"})
		b.wantAround(key, time.Minute)
		reply(b, b.Hold(time.Now(), writing(writer), 2, 30*time.Second))
		b.wantHolders(key, map[string]string{"mode": "write", writer: "2"})
		b.wantAround(key, time.Minute) // the leases are not added, and the TTL does not fall
		b.lets(writing(writer), false)
		b.wantKeys()
		sub.wantOnly("1", "end")
	})
}

// A refusal names a holder and changes nothing.
func TestReadWrite_Acquire_Refused(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		terms := redisstore.Terms{Lease: time.Minute}
		b.acquire(key, bob, time.Minute) // a plain lock, which Redisson's read-write locks ignore
		b.refused(reading(alice), terms, bob)
		b.refused(writing(writer), terms, bob)
		b.wantHolders(key, map[string]string{bob: "1"})
		reply(b, b.Release(time.Now(), claim(key, bob)))

		b.reads(bob, time.Minute)
		b.refused(writing(writer), terms, bob)
		b.refused(writing(bob+":write"), terms, bob) // nor does a reader become a writer
		b.wantHolders(key, map[string]string{"mode": "read", bob: "1"})
		b.lets(reading(bob), false)

		b.writes(nextWriter, time.Minute)
		b.gets(reading(bob), redisstore.Terms{Lease: time.Minute / 2, Under: nextWriter})
		b.refused(reading(alice), terms, nextWriter)
		b.refused(writing(writer), terms, nextWriter)
		if got := reply(b, b.Acquire(time.Now(), claim(key, alice), terms)).Refusal; got == nil {
			t.Error("a plain lock was granted beside a writer")
		}
		b.wantHolders(key, map[string]string{"mode": "write", nextWriter: "1", bob: "1"})
	})
}

// Only an acquire creates a holder or a timeout key.
func TestReadWrite_NotAHolder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		check := func(what string, claims ...redisstore.Claim) {
			t.Helper()
			before := b.snapshot()
			for _, c := range claims {
				for name, change := range b.changes(c) {
					if change() {
						t.Errorf("%s: %s of %s reports that it holds the lock", what, name, c.Field)
					}
				}
			}
			b.wantUnchanged(t, what, before)
		}
		check("free", reading(alice), writing(writer))
		b.reads(bob, time.Minute)
		check("read", reading(alice), writing(writer))
		b.lets(reading(bob), false)
		b.writes(nextWriter, time.Minute)
		check("written", reading(alice), writing(writer))
	})
}

// A reader that lost its timeout key may have lost the lock to another client. It is no longer a holder and
// gets no new key.
func TestRead_LostTimeoutKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.reads(bob, time.Minute)
		for _, name := range []string{"hold", "refresh", "renew"} {
			b.rdb.HDel(t.Context(), key, alice)
			b.reads(alice, time.Minute)
			b.dies(alice)
			if b.changes(reading(alice))[name]() {
				t.Errorf("%s reports that the reader holds the lock", name)
			}
			b.wantKeys(key, timeoutKey(bob, "1"))
		}
		if !b.Renew(t.Context(), []redisstore.Claim{reading(bob)}, 0)[0].Held {
			t.Error("the other reader does not hold the lock")
		}
		if b.Renew(t.Context(), []redisstore.Claim{reading(alice)}, 0)[0].Held {
			t.Error("a query reports that the reader holds the lock")
		}
	})
}

func TestRead_Hold_TimeoutKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		one, two, three := timeoutKey(alice, "1"), timeoutKey(alice, "2"), timeoutKey(alice, "3")
		b.reads(alice, time.Minute)
		set := func(count int, lease time.Duration) {
			t.Helper()
			for range 2 { // executed twice
				if !reply(b, b.Hold(time.Now(), reading(alice), count, lease)) {
					t.Fatal("not the holder")
				}
			}
		}
		set(3, time.Hour)
		b.wantHolders(key, map[string]string{"mode": "read", alice: "3"})
		b.wantKeys(key, one, two, three)
		for _, key := range []string{key, one, two, three} {
			b.wantAround(key, time.Hour)
		}
		set(2, time.Second)
		b.wantKeys(key, one, two)
		b.wantAround(one, time.Hour)
		set(3, 0)
		b.wantAround(three, time.Hour)
		set(1, 0)
		b.wantHolders(key, map[string]string{"mode": "read", alice: "1"})
		set(2, 0)
		b.lets(reading(alice), false) // for any count
		b.wantKeys()
	})
}

func TestRead_Renew_TimeoutKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.reads(alice, time.Minute)
		reply(b, b.Hold(time.Now(), reading(alice), 2, 0))
		b.reads(bob, time.Minute)
		for _, lease := range []time.Duration{time.Hour, time.Minute, 0} {
			if v := b.Renew(t.Context(), []redisstore.Claim{reading(alice)}, lease); !v[0].Held || v[0].Err != nil {
				t.Fatalf("got %+v", v[0])
			}
			b.wantAround(key, time.Hour)
			b.wantAround(timeoutKey(alice, "1"), time.Hour)
			b.wantAround(timeoutKey(alice, "2"), time.Hour)
			b.wantAround(timeoutKey(bob, "1"), time.Minute)
		}
	})
}

func TestRead_Renew_ManyLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.reads(alice, time.Minute)
		must(t, b.rdb.Set(t.Context(), "text", 1, 0).Err())
		list := []redisstore.Claim{
			{Kind: kinds.Read, Key: "text", Field: alice}, {Kind: kinds.Read, Key: "free", Field: alice}, reading(alice), reading(bob),
		}
		got := b.Renew(t.Context(), list, time.Hour)
		for i, held := range []bool{false, false, true, false} {
			if got[i].Held != held || got[i].Err != nil {
				t.Errorf("%+v: got %+v, want held: %v", list[i], got[i], held)
			}
		}
	})
}

// The lock lasts until the lease of the remaining reader ends. The last reader frees it.
func TestRead_Release(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		b.reads(alice, time.Hour)
		b.reads(bob, 10*time.Minute)
		b.reads("short:1", time.Minute)
		b.lets(reading("short:1"), true)
		b.wantAround(key, time.Hour)
		b.lets(reading(alice), true)
		b.wantAround(key, 10*time.Minute)
		b.wantKeys(key, timeoutKey(bob, "1"))
		b.lets(reading(bob), false)
		b.wantKeys()
		sub.wantOnly("0", "end")
	})
}

// Dead readers of this library exclude no client, whatever the TTL is. Living readers do.
func TestRead_DeadReaders(t *testing.T) {
	t.Parallel()
	const alice, bob = "alice:1099511627777", "bob:1099511627778" // numbers that no Java thread has
	each(t, func(_ *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		terms := redisstore.Terms{Lease: time.Minute, Wait: time.Minute}
		b.reads(alice, time.Hour)
		b.reads(bob, time.Hour)
		b.dies(alice)
		b.refused(writing(writer), redisstore.Terms{Lease: time.Minute}, alice)
		b.lets(reading(bob), false)
		b.wantKeys()

		b.reads(alice, time.Hour)
		b.reads(bob, time.Hour)
		b.dies(alice)
		b.dies(bob)
		b.gets(writing(writer), terms)
		b.wantHolders(key, map[string]string{"mode": "write", writer: "1"})
		b.wantAround(key, time.Minute)
		b.wantKeys(key)

		b.gets(reading(bob), redisstore.Terms{Lease: time.Minute, Under: writer})
		b.dies(bob)
		b.lets(writing(writer), false)
		b.wantKeys()
		sub.wantOnly("0", "1", "end")
	})
}

// A Redisson reader without timeout keys may be alive. It keeps the lock until the TTL ends, and at most half
// a minute after the other readers.
func TestRead_RedissonReaderWithoutTimeoutKeys(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.reads(alice, time.Hour)
		b.dies(alice)
		b.refused(writing(writer), redisstore.Terms{Lease: time.Minute}, alice)
		b.reads(bob, time.Hour)
		b.lets(reading(bob), true)
		b.wantHolders(key, map[string]string{"mode": "read", alice: "1"})
		b.wantAround(key, 30*time.Second)
	})
}

// Redisson renews a long TTL (lockWatchdogTimeout) rarely, so a clear does not lower it under such a reader.
func TestRead_RedissonReaderWithoutTimeoutKeys_Clear(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.reads(alice, time.Hour)
		b.dies(alice)
		for _, field := range []string{bob, "unknown:1"} {
			b.reads(bob, time.Minute)
			reply(b, b.Clear(time.Now(), []redisstore.Suspicion{{Kind: kinds.Read, Key: key, Fields: []string{field}}}))
			b.wantAround(key, time.Hour)
		}
	})
}

// A read hold inside a write hold has a separate lease, which never shortens the writer's lease.
func TestRead_InsideAWriteHold(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		b.writes(writer, time.Hour)
		b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: writer})
		b.wantAround(key, time.Hour)
		reply(b, b.Refresh(time.Now(), reading(alice), 30*time.Second))
		b.wantAround(key, time.Hour)
		b.lets(reading(alice), true)
		b.wantAround(key, time.Hour)
		b.wantHolders(key, map[string]string{"mode": "write", writer: "1"})

		b.gets(reading(bob), redisstore.Terms{Lease: time.Minute, Under: writer})
		b.lets(writing(writer), false) // a downgrade: readers can have it
		b.wantHolders(key, map[string]string{"mode": "read", bob: "1"})
		b.wantAround(key, time.Minute)
		b.reads(alice, time.Minute)
		b.lets(reading(alice), true)
		b.lets(reading(bob), false)
		b.wantKeys()
		sub.wantOnly("1", "0", "end")
	})
}

// Neither the end nor a shorter lease of the writer shortens the lease of its reader.
func TestWrite_Refresh_KeepsItsReaders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.writes(writer, time.Hour)
		b.gets(reading(alice), redisstore.Terms{Lease: 10 * time.Minute, Under: writer})
		if got := reply(b, b.Refresh(time.Now(), writing(writer), time.Minute)); !got.Mine || !got.Fell {
			t.Errorf("got %+v", got)
		}
		b.wantAround(key, 10*time.Minute)
	})
}

func TestReadWrite_Refresh(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		refresh := func(c redisstore.Claim, lease, ttl time.Duration, fell bool) {
			t.Helper()
			if got := reply(b, b.Refresh(time.Now(), c, lease)); !got.Mine || got.Fell != fell {
				t.Errorf("%s to %s: got %+v, want fell: %v", c.Field, lease, got, fell)
			}
			b.wantAround(key, ttl)
		}
		b.reads(alice, time.Hour)
		b.reads(bob, 10*time.Minute)
		refresh(reading(alice), 2*time.Hour, 2*time.Hour, false)
		refresh(reading(alice), time.Minute, 10*time.Minute, true)
		b.wantAround(timeoutKey(alice, "1"), time.Minute)
		refresh(reading(bob), 30*time.Second, time.Minute, true)
		b.lets(reading(alice), true)
		b.lets(reading(bob), false)
		b.writes(writer, time.Hour)
		refresh(writing(writer), 2*time.Hour, 2*time.Hour, false)
		refresh(writing(writer), time.Minute, time.Minute, true)
		sub.wantOnly("0", "0", "0", "1", "end")
	})
}

func TestReadWrite_HandOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		hand := func(c redisstore.Claim, to string, lease time.Duration) {
			t.Helper()
			for range 2 {
				if got := reply(b, b.HandOff(time.Now(), c, to, redisstore.Terms{Lease: lease})); !got.Mine {
					t.Errorf("got %+v", got)
				}
			}
		}
		b.writes(writer, time.Minute)
		hand(writing(writer), nextWriter, time.Hour)
		b.wantHolders(key, map[string]string{"mode": "write", nextWriter: "1"})
		b.wantAround(key, time.Hour)

		b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: nextWriter})
		call := b.HandOff(time.Now(), writing(nextWriter), writer, redisstore.Terms{Lease: time.Minute})
		if _, _, err := call.Wait(t.Context(), soon()); !wire.Rejects(err) {
			t.Errorf("a writer that also reads handed the lock to a writer: %v", err)
		}
		b.lets(writing(nextWriter), false)
		reply(b, b.Hold(time.Now(), reading(alice), 2, 0))
		hand(reading(alice), "marker:1", 10*time.Second)
		b.wantHolders(key, map[string]string{"mode": "read", "marker:1": "1"})
		b.wantKeys(key, timeoutKey("marker:1", "1"))
		b.wantAround(key, 10*time.Second)
		sub.wantOnly("1", "0", "end")
	})
}

func TestReadWrite_Force(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		force := func(kind *redisstore.Kind, want bool) {
			t.Helper()
			if got := reply(b, b.Force(time.Now(), kind, key)); got != want {
				t.Errorf("force %s: got %v, want %v", kind.Name, got, want)
			}
		}
		force(kinds.Read, false)
		b.reads(alice, time.Minute)
		reply(b, b.Hold(time.Now(), reading(alice), 2, 0))
		force(kinds.Write, false)
		force(kinds.Read, true)
		b.wantKeys()
		b.writes(writer, time.Minute)
		b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: writer})
		force(kinds.Read, false)
		force(kinds.Write, true)
		b.wantKeys()
		b.acquire(key, alice, time.Minute)
		for _, kind := range []*redisstore.Kind{kinds.Read, kinds.Write} {
			call := b.Force(time.Now(), kind, key)
			_, _, err := call.Wait(t.Context(), soon())
			if !errors.Is(err, redisstore.ErrNotALock) {
				t.Errorf("%s: got %v, want ErrNotALock", kind.Name, err)
			}
		}
		b.wantKeys(key)
		sub.wantOnly("0", "1", "end")
	})
}

func TestReadWrite_State(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.writes(writer, time.Minute)
		for _, field := range []string{alice, bob} {
			b.gets(reading(field), redisstore.Terms{Lease: time.Minute, Under: writer})
		}
		b.dies(alice)
		for _, kind := range []*redisstore.Kind{kinds.Read, kinds.Write} {
			got := reply(b, b.State(time.Now(), kind, key))
			if len(got.Holders) != 2 || got.Holders[writer] != "1" || got.Holders[bob] != "1" || got.TTL < 50*time.Second {
				t.Errorf("%s: got %+v", kind.Name, got)
			}
		}
	})
}

// Clear removes the remains of an attempt without an answer, whichever client holds the lock.
func TestReadWrite_Clear(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		clears := func(kind *redisstore.Kind, fields ...string) {
			t.Helper()
			for range 2 {
				got := reply(b, b.Clear(time.Now(), []redisstore.Suspicion{{Kind: kind, Key: "text", Fields: fields}, {Kind: kind, Key: key, Fields: fields}}))
				if len(got) != 2 || got[0].Err != nil || got[1].Err != nil {
					t.Errorf("got %+v", got)
				}
			}
		}
		must(t, b.rdb.Set(t.Context(), "text", 1, 0).Err())
		b.reads(alice, time.Minute)
		b.reads(bob, time.Hour)
		clears(kinds.Read, bob, "unknown:1")
		b.wantHolders(key, map[string]string{"mode": "read", alice: "1"})
		b.wantKeys("text", key, timeoutKey(alice, "1"))
		b.wantAround(key, time.Minute)
		clears(kinds.Read, alice)
		b.wantKeys("text")

		b.writes(writer, time.Minute)
		b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: writer})
		clears(kinds.Write, nextWriter)
		clears(kinds.Read, alice)
		b.wantHolders(key, map[string]string{"mode": "write", writer: "1"})
		clears(kinds.Write, writer)
		b.wantKeys("text")

		b.writes(writer, time.Minute)
		b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: writer}) // a thread of Redisson has one number for both
		clears(kinds.Write, writer)
		b.wantHolders(key, map[string]string{"mode": "read", alice: "1"})
		b.wantKeys("text", key, timeoutKey(alice, "1"))
		clears(kinds.Read, alice)
		b.wantKeys("text")
		sub.wantOnly("0", "1", "1", "0", "end")
	})
}

// A waiting writer blocks new readers, except in the first moment of its wait. The mark of the writer ends
// with the wait, or when the writer gets the lock.
func TestWrite_Acquire_Mark(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		terms := redisstore.Terms{Lease: time.Minute}
		waits := redisstore.Terms{Lease: time.Minute, Wait: time.Hour}
		b.reads(alice, time.Minute)
		b.refused(writing(writer), terms, alice) // a writer that does not wait leaves no mark
		b.wantKeys(key, timeoutKey(alice, "1"))
		for range 2 {
			b.refused(writing(writer), waits, alice)
			b.refused(writing(nextWriter), redisstore.Terms{Lease: time.Minute, Wait: 5 * time.Millisecond}, alice)
		}
		if ttl := b.rdb.PTTL(t.Context(), mark).Val(); ttl <= 5*time.Millisecond || ttl > 900*time.Millisecond {
			t.Errorf("the mark lasts %s, want up to 900ms", ttl)
		}
		must(t, b.rdb.Set(t.Context(), mark, "1 "+writer, time.Minute).Err()) // the mark is old now
		if ttl := b.refused(reading(bob), terms, writer); ttl < 50*time.Second || ttl > time.Minute {
			t.Errorf("refused for %s, want until the mark expires", ttl)
		}
		b.lets(reading(alice), false)
		b.refused(reading(bob), terms, writer) // it is the writer's turn
		b.gets(writing(writer), waits)
		b.wantKeys(key)
		must(t, b.rdb.Set(t.Context(), mark, "1 "+nextWriter, time.Minute).Err())
		b.gets(reading(alice), redisstore.Terms{Lease: 30 * time.Second, Under: writer})
		b.lets(reading(alice), true)
		b.lets(writing(writer), false)
		must(t, b.rdb.Set(t.Context(), mark, "9999999999999 "+writer, time.Minute).Err()) // the mark is new
		b.refused(reading(alice), terms, writer)
		b.rdb.Del(t.Context(), mark)
		b.reads(alice, time.Minute)
		must(t, b.rdb.Set(t.Context(), mark, "9999999999999 "+writer, time.Minute).Err())
		b.reads(bob, time.Minute)
		must(t, b.rdb.Set(t.Context(), mark, "without a name", time.Minute).Err())
		b.reads("third:1", time.Minute)
	})
}

// If the lease of a lock or the timeout key of a reader cannot be set, nothing remains in Redis.
func TestReadWrite_Acquire_Denied(t *testing.T) {
	t.Parallel()
	for _, commands := range [][]string{{"pexpire", "del"}, {"set"}, {"hset", "del"}} {
		all, app := onServer(t).without(commands...)
		all.rdb.HSet(t.Context(), "other", "mode", "read", bob, 1)
		all.rdb.Set(t.Context(), "{other}:"+bob+":rwlock_timeout:1", 1, 0)
		before := all.snapshot()
		for _, key := range []string{key, "other"} {
			denied(app, app.Acquire(time.Now(), redisstore.Claim{Kind: kinds.Read, Key: key, Field: alice}, redisstore.Terms{Lease: time.Second}))
		}
		if commands[0] != "set" {
			denied(app, app.Acquire(time.Now(), writing(writer), redisstore.Terms{Lease: time.Second}))
		}
		within(t, "undeletable to end", func() bool { return len(all.snapshot()) == len(before) })
		all.wantUnchanged(t, strings.Join(commands, ", "), before)
	}
}

// Readers and writers draw their tokens from the same counter as other kinds.
func TestWrite_Token(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		terms := redisstore.Terms{Lease: time.Minute, Token: true}
		first := reply(b, b.Acquire(time.Now(), writing(writer), terms)).Token
		next := reply(b, b.HandOff(time.Now(), writing(writer), nextWriter, terms)).Token
		if first < 1e15 || next <= first {
			t.Errorf("got %d and %d", first, next)
		}
	})
}

func TestLongestMark_AsInTheScript(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("local longestMark = %d ", redisstore.LongestMark.Milliseconds())
	if source := kinds.Write.Sources()["acquire"]; !strings.Contains(source, want) {
		t.Errorf("the script of a writer's acquire does not contain %q", want)
	}
}
