package redisstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

func TestAcquire_Free(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestAcquire_ExecutedTwiceIsOneHold(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		b.reply(b.SetHold(time.Now(), key, alice, 2, time.Hour)) // re-entered since
		b.acquire(key, alice, time.Minute)
		b.wantHolders(key, map[string]string{alice: "2"})
		b.wantTTL(key, time.Hour) // not lowered
	})
}

func TestAcquire_RefusalNamesHolderAndTTL(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		refusal, err := redisstore.Granted(b.reply(b.Acquire(time.Now(), key, bob, time.Hour)))
		if err != nil || refusal == nil {
			t.Fatalf("got %v, %v, want a refusal", refusal, err)
		}
		if refusal.Holder != alice || refusal.TTL <= 50*time.Second || refusal.TTL > time.Minute {
			t.Errorf("refusal: got %+v, want %s with about a minute", refusal, alice)
		}
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestAcquire_RefusedByKeyWithoutTTL(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.HSet(t.Context(), key, bob, 1)
		refusal, err := redisstore.Granted(b.reply(b.Acquire(time.Now(), key, alice, time.Minute)))
		if err != nil || refusal == nil || refusal.TTL >= 0 {
			t.Errorf("got %+v, %v, want a refusal with a negative TTL", refusal, err)
		}
	})
}

func TestAcquireAll_AllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		keys := []string{"a", "b", "c"}
		b.acquire("b", bob, time.Minute)
		refusal, err := redisstore.Granted(b.reply(b.AcquireAll(time.Now(), keys, alice, time.Minute)))
		if err != nil || refusal == nil || refusal.Index != 1 || refusal.Holder != bob {
			t.Fatalf("got %+v, %v, want a refusal by key 1, held by bob", refusal, err)
		}
		b.wantGone("a")
		b.wantGone("c")

		b.reply(b.Release(time.Now(), "b", bob))
		for range 2 { // executed twice
			if got := b.reply(b.AcquireAll(time.Now(), keys, alice, time.Minute)); got != int64(1) {
				t.Fatalf("got %v, want 1", got)
			}
		}
		for _, k := range keys {
			b.wantHolders(k, map[string]string{alice: "1"})
			b.wantTTL(k, time.Minute)
		}
	})
}

func TestAcquireAll_ExecutedTwiceKeepsTTL(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		keys := []string{"a", "b"}
		b.reply(b.AcquireAll(time.Now(), keys, alice, time.Minute))
		b.reply(b.Refresh(time.Now(), "a", alice, time.Hour))
		b.reply(b.AcquireAll(time.Now(), keys, alice, time.Minute))
		b.wantTTL("a", time.Hour)
	})
}

// mutation is a script that needs the holder's field, and its reply for a stranger.
var mutations = map[string]func(b *bench, key, field string) redisstore.Call{
	"SetHold": func(b *bench, key, field string) redisstore.Call {
		return b.SetHold(time.Now(), key, field, 2, time.Hour)
	},
	"Refresh": func(b *bench, key, field string) redisstore.Call {
		return b.Refresh(time.Now(), key, field, time.Hour)
	},
	"Handoff": func(b *bench, key, field string) redisstore.Call {
		return b.Handoff(time.Now(), key, field, "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:9", time.Hour)
	},
	"Release": func(b *bench, key, field string) redisstore.Call {
		return b.Release(time.Now(), key, field)
	},
}

func TestScripts_OnlyAcquireCreatesALock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, send := range mutations {
			if got := b.reply(send(b, key, alice)); got != int64(0) {
				t.Errorf("%s on a free key: got %v, want 0", name, got)
			}
		}
		if v := b.Renew(t.Context(), []redisstore.Claim{{Key: key, Field: alice}}, time.Minute); v[0].Held || v[0].Err != nil {
			t.Errorf("Renew on a free key: got %+v, want not held", v[0])
		}
		b.wantGone(key)
	})
}

func TestScripts_StrangersLockIsUntouched(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, bob, time.Minute)
		for name, send := range mutations {
			if got := b.reply(send(b, key, alice)); got != int64(0) {
				t.Errorf("%s: got %v, want 0", name, got)
			}
		}
		if v := b.Renew(t.Context(), []redisstore.Claim{{Key: key, Field: alice}}, time.Hour); v[0].Held {
			t.Error("Renew: got held")
		}
		b.wantHolders(key, map[string]string{bob: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestSetHold_SetsCountAndOnlyRaisesTTL(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		for range 2 { // executed twice: the count is set, not incremented
			b.reply(b.SetHold(time.Now(), key, alice, 3, time.Second))
		}
		b.wantHolders(key, map[string]string{alice: "3"})
		b.wantTTL(key, time.Minute)

		b.reply(b.SetHold(time.Now(), key, alice, 2, time.Hour))
		b.wantTTL(key, time.Hour)

		b.reply(b.SetHold(time.Now(), key, alice, 1, 0))
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Hour)
	})
}

func TestRefresh_RaisesAndLowers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		for _, lease := range []time.Duration{time.Hour, 30 * time.Second, 30 * time.Second} {
			if mine, err := redisstore.Mine(b.reply(b.Refresh(time.Now(), key, alice, lease))); !mine || err != nil {
				t.Fatalf("got %v, %v, want mine", mine, err)
			}
			b.wantTTL(key, lease)
		}
		b.wantHolders(key, map[string]string{alice: "1"})
	})
}

func TestHandoff_MovesTheLockWithoutMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel(key))
		b.acquire(key, alice, time.Minute)
		b.reply(b.SetHold(time.Now(), key, alice, 2, 0))
		for range 2 { // the second execution finds the new field: done
			if got := b.reply(b.Handoff(time.Now(), key, alice, bob, time.Hour)); got != int64(1) {
				t.Fatalf("got %v, want 1", got)
			}
		}
		b.wantHolders(key, map[string]string{bob: "1"})
		b.wantTTL(key, time.Hour)
		sub.wantOnly("end")
	})
}

// Who waits as Redisson does sleeps until the end of the TTL that it saw.
func TestScripts_TellWhoWaitsWhenTheTTLFalls(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(b *bench, lease time.Duration) redisstore.Call{
		"Refresh": func(b *bench, lease time.Duration) redisstore.Call {
			return b.Refresh(time.Now(), key, alice, lease)
		},
		"Handoff": func(b *bench, lease time.Duration) redisstore.Call {
			return b.Handoff(time.Now(), key, alice, bob, lease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				for lease, told := range map[time.Duration]bool{time.Hour: false, time.Minute: false, 30 * time.Second: true} {
					b.rdb.Del(t.Context(), key)
					sub := b.subscribe(redisstore.Channel(key))
					b.acquire(key, alice, time.Minute)
					for range 2 { // the second execution changes nothing, and tells nothing
						if mine, err := redisstore.Mine(b.reply(send(b, lease))); !mine || err != nil {
							t.Fatalf("got %v, %v, want mine", mine, err)
						}
					}
					b.wantTTL(key, lease)
					if told {
						sub.wantOnly("0", "end")
					} else {
						sub.wantOnly("end")
					}
				}
			})
		})
	}
}

// A key without a TTL has Redisson's waiters wait for a message alone.
func TestRefresh_TellsOfATTLWhereThereWasNone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		b.rdb.Persist(t.Context(), key)
		sub := b.subscribe(redisstore.Channel(key))
		b.reply(b.Refresh(time.Now(), key, alice, time.Hour))
		b.wantTTL(key, time.Hour)
		sub.wantOnly("0", "end")
	})
}

// A user without a right to the channel can make a lease shorter, and leave.
func TestScripts_ShorterLeasePublishForbidden(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	b.acquire(key, alice, time.Hour)
	for _, call := range []redisstore.Call{
		mute.Refresh(time.Now(), key, alice, time.Minute),
		mute.Handoff(time.Now(), key, alice, bob, 20*time.Second),
	} {
		if mine, err := redisstore.Mine(mute.reply(call)); !mine || err != nil {
			t.Errorf("got %v, %v, want mine", mine, err)
		}
	}
	b.wantHolders(key, map[string]string{bob: "1"})
	b.wantTTL(key, 20*time.Second)
}

func TestRelease_FreesWhateverTheCountAndPublishes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe("redisson_lock__channel:{order:42}")
		b.acquire(key, alice, time.Minute)
		b.reply(b.SetHold(time.Now(), key, alice, 5, 0))

		mine, told, err := redisstore.Released(b.reply(b.Release(time.Now(), key, alice)))
		if !mine || told != 1 || err != nil {
			t.Errorf("got %v, %d, %v, want mine and one subscriber told", mine, told, err)
		}
		b.wantGone(key)

		mine, _, err = redisstore.Released(b.reply(b.Release(time.Now(), key, alice))) // executed twice
		if mine || err != nil {
			t.Errorf("second execution: got %v, %v, want not mine", mine, err)
		}
		sub.wantOnly("0", "end")
	})
}

// A user without a right to the channel still gets rid of the lock.
func TestRelease_PublishForbidden(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	mute.acquire(key, alice, time.Minute)
	mine, told, err := redisstore.Released(mute.reply(mute.Release(time.Now(), key, alice)))
	if !mine || told != 0 || err != nil {
		t.Errorf("got %v, %d, %v, want mine, nobody told", mine, told, err)
	}
	b.wantGone(key)
}

func TestForce_PublishForbidden(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	b.acquire(key, alice, time.Minute)
	if freed, err := redisstore.Mine(mute.reply(mute.Force(time.Now(), key))); !freed || err != nil {
		t.Errorf("got %v, %v, want freed", freed, err)
	}
	b.wantGone(key)
}

// mute adds a user without a right to any channel.
func (b *bench) mute() (all, mute *bench) {
	b.t.Helper()
	err := b.rdb.Do(b.t.Context(), "acl", "setuser", "mute", "on", "nopass", "~*", "+@all", "resetchannels").Err()
	if err != nil {
		b.t.Fatal(err)
	}
	return b, newBench(b.t, b.clientOf("mute"))
}

func TestForce_FreesAnyHolderAndPublishes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel(key))
		b.acquire(key, bob, time.Minute)
		for _, want := range []bool{true, false} {
			if got, err := redisstore.Mine(b.reply(b.Force(time.Now(), key))); got != want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		}
		b.wantGone(key)
		sub.wantOnly("0", "end")
	})
}

func TestState_ReadsOneInstant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		snap, err := redisstore.ReadState(b.reply(b.State(time.Now(), key)))
		if err != nil || len(snap.Holders) != 0 || snap.TTL != -2*time.Millisecond {
			t.Errorf("free: got %+v, %v", snap, err)
		}
		b.acquire(key, alice, time.Minute)
		snap, err = redisstore.ReadState(b.reply(b.State(time.Now(), key)))
		if err != nil || snap.Holders[alice] != "1" || snap.TTL <= 50*time.Second {
			t.Errorf("held: got %+v, %v", snap, err)
		}
	})
}

func TestRenew_VerdictPerClaimInOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire("mine", alice, time.Minute)
		b.acquire("theirs", bob, time.Minute)
		claims := []redisstore.Claim{{Key: "theirs", Field: alice}, {Key: "mine", Field: alice}, {Key: "nobody's", Field: alice}}
		var held []bool
		for _, v := range b.Renew(t.Context(), claims, time.Hour) {
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			held = append(held, v.Held)
		}
		if want := []bool{false, true, false}; !slices.Equal(held, want) {
			t.Errorf("held: got %v, want %v", held, want)
		}
		b.wantTTL("mine", time.Hour)
		b.wantTTL("theirs", time.Minute)
		b.wantGone("nobody's")
	})
}

func TestRenew_NeverLowersAndZeroOnlyLooks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Hour)
		for _, lease := range []time.Duration{time.Second, 0} {
			if v := b.Renew(t.Context(), []redisstore.Claim{{Key: key, Field: alice}}, lease); !v[0].Held || v[0].Err != nil {
				t.Errorf("lease %s: got %+v, want held", lease, v[0])
			}
			b.wantTTL(key, time.Hour)
		}
	})
}

// A key that is no lock any more is not held, and the others of its script are renewed.
func TestRenew_WrongTypeSpoilsOnlyItself(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, "text", 0)
		b.acquire("other", alice, time.Minute)
		v := b.Renew(t.Context(), []redisstore.Claim{{Key: key, Field: alice}, {Key: "other", Field: alice}}, time.Hour)
		if v[0].Err != nil || v[0].Held {
			t.Errorf("a string as a lock: got %+v, want not held", v[0])
		}
		if v[1].Err != nil || !v[1].Held {
			t.Errorf("beside it: got %+v, want held", v[1])
		}
		b.wantTTL("other", time.Hour)
	})
}

func TestScripts_WrongTypeIsAnAnsweredError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, "text", 0)
		calls := map[string]redisstore.Call{
			"Acquire":    b.Acquire(time.Now(), key, alice, time.Minute),
			"AcquireAll": b.AcquireAll(time.Now(), []string{"free", key}, alice, time.Minute),
		}
		for name, send := range mutations {
			calls[name] = send(b, key, alice)
		}
		for name, call := range calls {
			_, fate, err := call.Wait(context.Background(), soon())
			if err == nil || fate != redisstore.Answered || redisstore.Transient(err) {
				t.Errorf("%s: got %v, fate %d, want an answered error that does not pass", name, err, fate)
			}
		}
		b.wantGone("free")
		if got := b.rdb.Get(t.Context(), key).Val(); got != "text" {
			t.Errorf("the string: got %q", got)
		}
	})
}

func TestScripts_AfterScriptFlush(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		flush := func() {
			t.Helper()
			if err := b.rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		flush()
		b.acquire(key, alice, time.Minute)
		flush()
		if v := b.Renew(t.Context(), []redisstore.Claim{{Key: key, Field: alice}}, time.Hour); !v[0].Held || v[0].Err != nil {
			t.Errorf("Renew: got %+v", v[0])
		}
		for _, send := range []func() redisstore.Call{
			func() redisstore.Call { return b.SetHold(time.Now(), key, alice, 2, 0) },
			func() redisstore.Call { return b.Refresh(time.Now(), key, alice, time.Minute) },
			func() redisstore.Call { return b.Handoff(time.Now(), key, alice, bob, time.Minute) },
			func() redisstore.Call { return b.Release(time.Now(), key, bob) },
		} {
			flush()
			if got := b.reply(send()); got.(int64) < 1 {
				t.Errorf("got %v, want done", got)
			}
		}
		b.wantGone(key)
	})
}

func TestClear_FreesWhatIsUnderSuspicionAndPublishes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel("mine"))
		b.acquire("mine", alice, time.Minute)
		b.acquire("theirs", bob, time.Minute)
		b.rdb.Set(t.Context(), "text", "no lock", 0)
		list := []redisstore.Suspicion{
			{Key: "nobody's", Fields: []string{alice}},
			{Key: "text", Fields: []string{alice}},
			{Key: "mine", Fields: []string{"another", alice}},
			{Key: "theirs", Fields: []string{alice}},
		}
		found, err := redisstore.Cleared(b.reply(b.Clear(time.Now(), list)), len(list))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]string{nil, nil, {alice}, {bob}} {
			if found[i].Err != nil || !slices.Equal(found[i].Fields, want) {
				t.Errorf("%s: got %+v, want %v", list[i].Key, found[i], want)
			}
		}
		b.wantGone("mine")
		b.wantHolders("theirs", map[string]string{bob: "1"})
		sub.wantOnly("0", "end")
	})
}
