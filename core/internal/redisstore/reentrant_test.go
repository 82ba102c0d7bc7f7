package redisstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestStore_Acquire_Free(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestStore_Acquire_Twice(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		reply(b, b.Hold(time.Now(), claim(key, alice), 2, time.Hour)) // re-entered in between
		b.acquire(key, alice, time.Minute)
		b.wantHolders(key, map[string]string{alice: "2"})
		b.wantTTL(key, time.Hour) // the TTL is not lowered
	})
}

func TestStore_Acquire_Refused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		refusal := reply(b, b.Acquire(time.Now(), claim(key, bob), redisstore.Terms{Lease: time.Hour})).Refusal
		if refusal == nil {
			t.Fatal("got a grant, want a refusal")
		}
		if refusal.Holder != alice || refusal.TTL <= 50*time.Second || refusal.TTL > time.Minute {
			t.Errorf("refusal: got %+v, want %s with about a minute", refusal, alice)
		}
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestStore_Acquire_RefusedWithoutTTL(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.HSet(t.Context(), key, bob, 1)
		refusal := reply(b, b.Acquire(time.Now(), claim(key, alice), redisstore.Terms{Lease: time.Minute})).Refusal
		if refusal == nil || refusal.TTL >= 0 {
			t.Errorf("got %+v, want a refusal with a negative TTL", refusal)
		}
	})
}

func TestStore_AcquireAll_AllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		keys := []string{"a", "b", "c"}
		b.acquire("b", bob, time.Minute)
		refusal := reply(b, b.AcquireAll(time.Now(), kinds.Reentrant, keys, alice, time.Minute)).Refusal
		if refusal == nil || refusal.Index != 1 || refusal.Holder != bob {
			t.Fatalf("got %+v, want a refusal by key 1, held by bob", refusal)
		}
		b.wantGone("a")
		b.wantGone("c")

		reply(b, b.Release(time.Now(), claim("b", bob)))
		for range 2 { // executed twice
			if got := reply(b, b.AcquireAll(time.Now(), kinds.Reentrant, keys, alice, time.Minute)); got.Refusal != nil {
				t.Fatalf("got %+v, want a grant", got.Refusal)
			}
		}
		for _, k := range keys {
			b.wantHolders(k, map[string]string{alice: "1"})
			b.wantTTL(k, time.Minute)
		}
	})
}

func TestStore_AcquireAll_Twice(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		keys := []string{"a", "b"}
		reply(b, b.AcquireAll(time.Now(), kinds.Reentrant, keys, alice, time.Minute))
		reply(b, b.Refresh(time.Now(), claim("a", alice), time.Hour))
		reply(b, b.AcquireAll(time.Now(), kinds.Reentrant, keys, alice, time.Minute))
		b.wantTTL("a", time.Hour)
	})
}

// mutations contains the scripts that need the holder's field. Each reports whether Redis had the field.
var mutations = map[string]func(b *bench, key, field string) (mine bool, fate wire.Fate, err error){
	"Hold": func(b *bench, key, field string) (bool, wire.Fate, error) {
		call := b.Hold(time.Now(), claim(key, field), 2, time.Hour)
		return call.Wait(context.Background(), soon())
	},
	"Refresh": func(b *bench, key, field string) (bool, wire.Fate, error) {
		call := b.Refresh(time.Now(), claim(key, field), time.Hour)
		v, fate, err := call.Wait(context.Background(), soon())
		return v.Mine, fate, err
	},
	"HandOff": func(b *bench, key, field string) (bool, wire.Fate, error) {
		call := b.HandOff(time.Now(), claim(key, field), "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:9", redisstore.Terms{Lease: time.Hour})
		v, fate, err := call.Wait(context.Background(), soon())
		return v.Mine, fate, err
	},
	"Release": func(b *bench, key, field string) (bool, wire.Fate, error) {
		call := b.Release(time.Now(), claim(key, field))
		v, fate, err := call.Wait(context.Background(), soon())
		return v.Mine, fate, err
	},
}

func TestStore_OnlyAcquireCreatesALock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, send := range mutations {
			if mine, fate, err := send(b, key, alice); mine || fate != wire.Answered || err != nil {
				t.Errorf("%s on a free key: got %v, fate %d, %v, want that it is not held", name, mine, fate, err)
			}
		}
		if v := b.Renew(t.Context(), []redisstore.Claim{claim(key, alice)}, time.Minute); v[0].Held || v[0].Err != nil {
			t.Errorf("Renew on a free key: got %+v, want not held", v[0])
		}
		b.wantGone(key)
	})
}

func TestStore_LockOfAnotherHolder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, bob, time.Minute)
		for name, send := range mutations {
			if mine, fate, err := send(b, key, alice); mine || fate != wire.Answered || err != nil {
				t.Errorf("%s: got %v, fate %d, %v, want not mine", name, mine, fate, err)
			}
		}
		if v := b.Renew(t.Context(), []redisstore.Claim{claim(key, alice)}, time.Hour); v[0].Held {
			t.Error("Renew: got held")
		}
		b.wantHolders(key, map[string]string{bob: "1"})
		b.wantTTL(key, time.Minute)
	})
}

func TestStore_Hold(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		for range 2 { // executed twice: the count is set, not incremented
			reply(b, b.Hold(time.Now(), claim(key, alice), 3, time.Second))
		}
		b.wantHolders(key, map[string]string{alice: "3"})
		b.wantTTL(key, time.Minute)

		reply(b, b.Hold(time.Now(), claim(key, alice), 2, time.Hour))
		b.wantTTL(key, time.Hour)

		reply(b, b.Hold(time.Now(), claim(key, alice), 1, 0))
		b.wantHolders(key, map[string]string{alice: "1"})
		b.wantTTL(key, time.Hour)
	})
}

func TestStore_Refresh(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		for _, lease := range []time.Duration{time.Hour, 30 * time.Second, 30 * time.Second} {
			if change := reply(b, b.Refresh(time.Now(), claim(key, alice), lease)); !change.Mine {
				t.Fatalf("got %+v, want mine", change)
			}
			b.wantTTL(key, lease)
		}
		b.wantHolders(key, map[string]string{alice: "1"})
	})
}

func TestStore_HandOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel(key))
		b.acquire(key, alice, time.Minute)
		reply(b, b.Hold(time.Now(), claim(key, alice), 2, 0))
		for range 2 { // the second execution finds the new field
			if got := reply(b, b.HandOff(time.Now(), claim(key, alice), bob, redisstore.Terms{Lease: time.Hour})); !got.Mine || got.Fell {
				t.Fatalf("got %+v, want mine, no subscriber notified", got)
			}
		}
		b.wantHolders(key, map[string]string{bob: "1"})
		b.wantTTL(key, time.Hour)
		sub.wantOnly("end")
	})
}

// If the TTL falls, a message is published, because a Redisson waiter sleeps until the end of the TTL that it
// saw.
func TestStore_PublishesAShorterTTL(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(b *bench, lease time.Duration) redisstore.Call[redisstore.Change]{
		"Refresh": func(b *bench, lease time.Duration) redisstore.Call[redisstore.Change] {
			return b.Refresh(time.Now(), claim(key, alice), lease)
		},
		"Handoff": func(b *bench, lease time.Duration) redisstore.Call[redisstore.Change] {
			return b.HandOff(time.Now(), claim(key, alice), bob, redisstore.Terms{Lease: lease})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				for lease, notifies := range map[time.Duration]bool{time.Hour: false, time.Minute: false, 30 * time.Second: true} {
					b.rdb.Del(t.Context(), key)
					sub := b.subscribe(redisstore.Channel(key))
					b.acquire(key, alice, time.Minute)
					for range 2 { // the second execution changes nothing and sends no message
						if change := reply(b, send(b, lease)); !change.Mine {
							t.Fatalf("got %+v, want mine", change)
						}
					}
					b.wantTTL(key, lease)
					if notifies {
						sub.wantOnly("0", "end")
					} else {
						sub.wantOnly("end")
					}
				}
			})
		})
	}
}

// If a key without a TTL gets one, a message is published. While a key has no TTL, Redisson's waiters wait only
// for a message.
func TestStore_Refresh_PublishesTheFirstTTL(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Minute)
		b.rdb.Persist(t.Context(), key)
		sub := b.subscribe(redisstore.Channel(key))
		reply(b, b.Refresh(time.Now(), claim(key, alice), time.Hour))
		b.wantTTL(key, time.Hour)
		sub.wantOnly("0", "end")
	})
}

// A user without the right to the channel can shorten a lease and leave a marker.
func TestStore_ShorterLease_DeniedPublish(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	b.acquire(key, alice, time.Hour)
	for _, call := range []redisstore.Call[redisstore.Change]{
		mute.Refresh(time.Now(), claim(key, alice), time.Minute),
		mute.HandOff(time.Now(), claim(key, alice), bob, redisstore.Terms{Lease: 20 * time.Second}),
	} {
		if change := reply(mute, call); !change.Mine {
			t.Errorf("got %+v, want mine", change)
		}
	}
	b.wantHolders(key, map[string]string{bob: "1"})
	b.wantTTL(key, 20*time.Second)
}

func TestStore_Release(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe("redisson_lock__channel:{order:42}")
		b.acquire(key, alice, time.Minute)
		reply(b, b.Hold(time.Now(), claim(key, alice), 5, 0))

		released := reply(b, b.Release(time.Now(), claim(key, alice)))
		if !released.Mine || released.Notified != 1 {
			t.Errorf("got %+v, want mine and one subscriber notified", released)
		}
		b.wantGone(key)

		released = reply(b, b.Release(time.Now(), claim(key, alice))) // executed twice
		if released.Mine {
			t.Errorf("second execution: got %+v, want not mine", released)
		}
		sub.wantOnly("0", "end")
	})
}

// A user without the right to the channel can still free the lock.
func TestStore_Release_DeniedPublish(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	mute.acquire(key, alice, time.Minute)
	released := reply(mute, mute.Release(time.Now(), claim(key, alice)))
	if !released.Mine || released.Notified != 0 {
		t.Errorf("got %+v, want mine, no subscriber notified", released)
	}
	b.wantGone(key)
}

func TestStore_Force_DeniedPublish(t *testing.T) {
	t.Parallel()
	b, mute := onServer(t).mute()
	b.acquire(key, alice, time.Minute)
	if !reply(mute, mute.Force(time.Now(), kinds.Reentrant, key)) {
		t.Error("got not held, want freed")
	}
	b.wantGone(key)
}

// mute returns b and a store whose user has no right to any channel.
func (b *bench) mute() (all, mute *bench) {
	b.t.Helper()
	err := b.rdb.Do(b.t.Context(), "acl", "setuser", "mute", "on", "nopass", "~*", "+@all", "resetchannels").Err()
	if err != nil {
		b.t.Fatal(err)
	}
	return b, newBench(b.t, b.clientOf("mute"))
}

func TestStore_Force(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel(key))
		b.acquire(key, bob, time.Minute)
		for _, want := range []bool{true, false} {
			if got := reply(b, b.Force(time.Now(), kinds.Reentrant, key)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		b.wantGone(key)
		sub.wantOnly("0", "end")
	})
}

func TestStore_State(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		snap := reply(b, b.State(time.Now(), kinds.Reentrant, key))
		if len(snap.Holders) != 0 || snap.TTL != -2*time.Millisecond {
			t.Errorf("free: got %+v", snap)
		}
		b.acquire(key, alice, time.Minute)
		snap = reply(b, b.State(time.Now(), kinds.Reentrant, key))
		if snap.Holders[alice] != "1" || snap.TTL <= 50*time.Second {
			t.Errorf("held: got %+v", snap)
		}
	})
}

func TestStore_Renew_Order(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire("mine", alice, time.Minute)
		b.acquire("theirs", bob, time.Minute)
		claims := []redisstore.Claim{claim("theirs", alice), claim("mine", alice), claim("unknown", alice)}
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
		b.wantGone("unknown")
	})
}

func TestStore_Renew_OnlyRaises(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.acquire(key, alice, time.Hour)
		for _, lease := range []time.Duration{time.Second, 0} {
			if v := b.Renew(t.Context(), []redisstore.Claim{claim(key, alice)}, lease); !v[0].Held || v[0].Err != nil {
				t.Errorf("lease %s: got %+v, want held", lease, v[0])
			}
			b.wantTTL(key, time.Hour)
		}
	})
}

// A key that is no longer a lock is reported as not held, and the same script still renews the other keys.
func TestStore_Renew_WrongType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, "text", 0)
		b.acquire("other", alice, time.Minute)
		v := b.Renew(t.Context(), []redisstore.Claim{claim(key, alice), claim("other", alice)}, time.Hour)
		if v[0].Err != nil || v[0].Held {
			t.Errorf("a string as a lock: got %+v, want not held", v[0])
		}
		if v[1].Err != nil || !v[1].Held {
			t.Errorf("the other key: got %+v, want held", v[1])
		}
		b.wantTTL("other", time.Hour)
	})
}

func TestStore_WrongType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, "text", 0)
		want := func(name string, fate wire.Fate, err error) {
			t.Helper()
			if err == nil || fate != wire.Answered || wire.Transient(err) || !wire.Rejects(err) {
				t.Errorf("%s: got %v, fate %d, want a final error as the answer", name, err, fate)
			}
		}
		for name, call := range map[string]redisstore.Call[redisstore.Grant]{
			"Acquire":    b.Acquire(time.Now(), claim(key, alice), redisstore.Terms{Lease: time.Minute}),
			"AcquireAll": b.AcquireAll(time.Now(), kinds.Reentrant, []string{"free", key}, alice, time.Minute),
		} {
			_, fate, err := call.Wait(context.Background(), soon())
			want(name, fate, err)
		}
		for name, send := range mutations {
			_, fate, err := send(b, key, alice)
			want(name, fate, err)
		}
		b.wantGone("free")
		if got := b.rdb.Get(t.Context(), key).Val(); got != "text" {
			t.Errorf("the string: got %q", got)
		}
	})
}

func TestStore_AfterScriptFlush(t *testing.T) {
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
		if v := b.Renew(t.Context(), []redisstore.Claim{claim(key, alice)}, time.Hour); !v[0].Held || v[0].Err != nil {
			t.Errorf("Renew: got %+v", v[0])
		}
		for i, send := range []func() bool{
			func() bool { return reply(b, b.Hold(time.Now(), claim(key, alice), 2, 0)) },
			func() bool { return reply(b, b.Refresh(time.Now(), claim(key, alice), time.Minute)).Mine },
			func() bool {
				return reply(b, b.HandOff(time.Now(), claim(key, alice), bob, redisstore.Terms{Lease: time.Minute})).Mine
			},
			func() bool { return reply(b, b.Release(time.Now(), claim(key, bob))).Mine },
		} {
			flush()
			if !send() {
				t.Errorf("step %d: got not mine, want done", i)
			}
		}
		b.wantGone(key)
	})
}

func TestStore_Clear(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel("mine"))
		b.acquire("mine", alice, time.Minute)
		b.acquire("theirs", bob, time.Minute)
		b.rdb.Set(t.Context(), "text", "no lock", 0)
		list := []redisstore.Suspicion{
			{Kind: kinds.Reentrant, Key: "unknown", Fields: []string{alice}},
			{Kind: kinds.Reentrant, Key: "text", Fields: []string{alice}},
			{Kind: kinds.Reentrant, Key: "mine", Fields: []string{"another", alice}},
			{Kind: kinds.Reentrant, Key: "theirs", Fields: []string{alice}},
		}
		found := reply(b, b.Clear(time.Now(), list))
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
