package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// The values "x" and "y" of a group, with their fields in Redis and their keys.
var (
	fieldX, fieldY = redisstore.GroupValue([]byte("x")), redisstore.GroupValue([]byte("y"))
	keyX, keyY     = redisstore.MemberKey(key, fieldX), redisstore.MemberKey(key, fieldY)
)

func member(key, field string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.Group, Key: key, Field: field}
}

// takeMembers acquires values and returns the refusal.
func (b *bench) takeMembers(field string, lease time.Duration, keys ...string) *redisstore.Refusal {
	b.t.Helper()
	if len(keys) == 1 {
		return reply(b, b.Acquire(time.Now(), member(keys[0], field), redisstore.Terms{Lease: lease})).Refusal
	}
	return reply(b, b.AcquireAll(time.Now(), kinds.Group, keys, field, lease)).Refusal
}

// wantMember requires that a value has only these three fields, and a lease that is at most lease and almost as long.
func (b *bench) wantMember(value, holder, count string, lease time.Duration) {
	b.t.Helper()
	hash := b.rdb.HGetAll(context.Background(), key).Val()
	ends, _ := strconv.ParseInt(hash[value+":"+holder+":expire_time"], 10, 64)
	if left := time.Until(time.UnixMilli(ends)); left > lease || left < lease-10*time.Second {
		b.t.Errorf("%s: the lease ends in %s, want about %s", value, left, lease)
	}
	if hash[value] != holder || hash[value+":"+holder+":lock_count"] != count {
		b.t.Errorf("%s: got %v, want the holder %s with count %s", value, hash, holder, count)
	}
	b.wantFields(value, 3)
}

// wantFields requires a number of fields that begin with a value.
func (b *bench) wantFields(value string, n int) {
	b.t.Helper()
	fields := b.rdb.HKeys(context.Background(), key).Val()
	if fields = slices.DeleteFunc(fields, func(f string) bool { return !strings.HasPrefix(f, value) }); len(fields) != n {
		b.t.Errorf("%s: got the fields %q, want %d", value, fields, n)
	}
}

// beyond is the time for which the hash of a group outlives the longest lease.
const beyond = 100 * time.Millisecond

// The hash outlives the leases of its values. See raise in group.lua.
func TestGroup_HashOutlivesTheLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.takeMembers(alice, time.Minute, keyX)
		const rest = `local time = redis.call('TIME')
			return redis.call('PTTL', KEYS[1]) - (redis.call('HGET', KEYS[1], ARGV[1]) - (time[1] * 1000 + math.floor(time[2] / 1000)))`
		longer, err := b.rdb.Eval(t.Context(), rest, []string{key}, fieldX+":"+alice+":expire_time").Int()
		if err != nil || longer < 50 || longer > 110 {
			t.Errorf("the hash lives %d ms longer than the lease, %v; want about 100 ms", longer, err)
		}
	})
}

// If another program made the hash permanent, it gets a TTL again that is not shorter than the lease.
func TestGroup_PermanentHash(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, change := range map[string]func(){
			"hold":  func() { reply(b, b.Hold(time.Now(), member(keyX, alice), 2, 0)) },
			"renew": func() { b.Renew(t.Context(), []redisstore.Claim{member(keyX, alice)}, 30*time.Second) },
		} {
			b.takeMembers(alice, time.Minute, keyX)
			must(t, b.rdb.Persist(t.Context(), key).Err())
			change()
			if ttl := b.rdb.PTTL(t.Context(), key).Val(); ttl < 50*time.Second {
				t.Errorf("%s: the hash lives for %s, want the lease of a minute", name, ttl)
			}
			b.lets(member(keyX, alice), false)
		}
	})
}

// The scripts write the three fields that Redisson writes for each value. Each script may run twice. No operation on one
// value changes another one, and the TTL of the hash follows the longest lease.
func TestGroup_Operations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		twice := func(call func()) { call(); call() }
		twice(func() {
			if r := b.takeMembers(alice, time.Minute, keyX, keyY); r != nil {
				t.Fatalf("refused by %+v", r)
			}
		})
		b.wantMember(fieldX, alice, "1", time.Minute)
		b.wantMember(fieldY, alice, "1", time.Minute)
		b.wantTTL(key, time.Minute+beyond)

		twice(func() { reply(b, b.Hold(time.Now(), member(keyX, alice), 2, 2*time.Minute)) })
		b.wantMember(fieldX, alice, "2", 2*time.Minute)
		b.wantMember(fieldY, alice, "1", time.Minute)
		b.wantTTL(key, 2*time.Minute+beyond)

		for i, want := range []bool{true, false} { // the message only the first time
			if c := reply(b, b.Refresh(time.Now(), member(keyX, alice), 30*time.Second)); !c.Mine || c.Fell != want {
				t.Errorf("refresh %d: got %+v", i, c)
			}
		}
		b.wantMember(fieldX, alice, "2", 30*time.Second)
		b.wantTTL(key, 2*time.Minute+beyond)

		twice(func() {
			verdicts := b.Renew(t.Context(), []redisstore.Claim{member(keyX, alice), member(keyY, bob), member(keyY, alice)}, time.Minute)
			if !verdicts[0].Held || verdicts[1].Held || !verdicts[2].Held || verdicts[1].Err != nil {
				t.Errorf("renewal: got %+v", verdicts)
			}
		})
		b.wantMember(fieldX, alice, "2", time.Minute)

		snap := reply(b, b.State(time.Now(), kinds.Group, keyX))
		if len(snap.Holders) != 1 || snap.Holders[alice] != "2" || snap.TTL <= 50*time.Second {
			t.Errorf("state: got %+v", snap)
		}

		twice(func() {
			if c := reply(b, b.HandOff(time.Now(), member(keyX, alice), bob, redisstore.Terms{Lease: time.Minute})); !c.Mine {
				t.Errorf("hand-off: got %+v", c)
			}
		})
		b.wantMember(fieldX, bob, "1", time.Minute)
		if c := reply(b, b.HandOff(time.Now(), member(keyX, alice), alice, redisstore.Terms{Lease: time.Minute})); c.Mine {
			t.Error("a field that does not hold the value handed it off")
		}

		for i, want := range []bool{true, false} {
			if r := reply(b, b.Release(time.Now(), member(keyX, bob))); r.Mine != want {
				t.Errorf("release %d: got %+v", i, r)
			}
		}
		b.wantFields(fieldX, 0)
		b.wantMember(fieldY, alice, "1", time.Minute)

		for i, want := range []bool{true, false} {
			if freed := reply(b, b.Force(time.Now(), kinds.Group, keyY)); freed != want {
				t.Errorf("force %d: got %v", i, freed)
			}
		}
		b.wantGone(key)
		if snap := reply(b, b.State(time.Now(), kinds.Group, keyX)); len(snap.Holders) != 0 || snap.TTL != -2*time.Millisecond {
			t.Errorf("state of a free value: got %+v", snap)
		}
	})
}

// A refusal names the first value that another client holds, and nothing is taken. A value whose lease has expired is
// free although its fields are there, as Redisson leaves them. Whoever takes it removes them.
func TestGroup_Acquire_Refused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		ends := func(in time.Duration) string { return fmt.Sprint(time.Now().Add(in).UnixMilli()) }
		redisson := func(value string, in time.Duration) {
			b.rdb.HSet(t.Context(), key, value, bob, value+":"+bob+":expire_time", ends(in), value+":"+bob+":lock_count", 1)
			b.rdb.PExpire(t.Context(), key, time.Hour)
		}
		redisson(fieldY, time.Minute)
		r := b.takeMembers(alice, time.Minute, keyX, keyY)
		if r == nil || r.Holder != bob || r.Index != 1 || r.TTL > time.Minute || r.TTL < 50*time.Second {
			t.Errorf("got %+v, want a refusal by value 1", r)
		}
		b.wantFields(fieldX, 0)
		if r := b.takeMembers(alice, time.Minute, keyX); r != nil {
			t.Errorf("a free value: refused by %+v", r)
		}

		redisson(fieldY, -time.Second)
		if r := b.takeMembers(alice, time.Minute, keyY); r != nil {
			t.Errorf("a value whose lease has expired: refused by %+v", r)
		}
		b.wantMember(fieldY, alice, "1", time.Minute)
		b.wantTTL(key, time.Hour) // not lowered
		if r := reply(b, b.Release(time.Now(), member(keyY, bob))); r.Mine {
			t.Error("the former holder released the value")
		}
	})
}

// Acquisitions remove the fields of holders whose leases ended more than a minute ago, whichever client left them.
func TestGroup_DeadValuesAreRemoved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.takeMembers(alice, time.Minute, keyX)
		leave := func(value, holder string, ended time.Duration) {
			end := strconv.FormatInt(time.Now().Add(-ended).UnixMilli(), 10)
			must(t, b.rdb.HSet(t.Context(), key, value+":"+holder+":expire_time", end, value+":"+holder+":lock_count", 1).Err())
		}
		for i := range 50 {
			value := fmt.Sprintf("dead%02d", i)
			leave(value, bob, time.Hour)
			must(t, b.rdb.HSet(t.Context(), key, value, bob).Err())
		}
		leave("late", bob, 10*time.Second) // a client whose clock is slow may still renew it
		leave(fieldX, bob, time.Hour)      // alice has the value now
		for range 500 {
			b.takeMembers(bob, time.Minute, keyY)
			reply(b, b.Release(time.Now(), member(keyY, bob)))
		}
		b.wantMember(fieldX, alice, "1", time.Minute)
		b.wantFields("late", 2)
		if n := b.rdb.HLen(t.Context(), key).Val(); n != 5 {
			t.Errorf("the hash has %d fields, want 5", n)
		}
	})
}

// Clear frees the values of unanswered commands, several groups in one script.
func TestGroup_Clear(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.takeMembers(alice, time.Minute, keyX)
		b.takeMembers(bob, time.Minute, keyY)
		b.rdb.Set(t.Context(), "text", "no hash", 0)
		list := []redisstore.Suspicion{
			{Kind: kinds.Group, Key: keyX, Fields: []string{bob, alice}},
			{Kind: kinds.Group, Key: redisstore.MemberKey("text", fieldX), Fields: []string{alice}},
			{Kind: kinds.Group, Key: keyY, Fields: []string{alice}},
		}
		for i, want := range [][]string{{alice}, nil} {
			found := reply(b, b.Clear(time.Now(), list))
			if !slices.Equal(found[0].Fields, want) || len(found[1].Fields) != 0 || !slices.Equal(found[2].Fields, []string{bob}) {
				t.Errorf("clear %d: got %+v", i, found)
			}
		}
		b.wantFields(fieldX, 0)
		b.wantMember(fieldY, bob, "1", time.Minute)
	})
}

// The message of a release wakes all waiters of each Java process ("1"), because they may wait for other values.
func TestGroup_Messages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(redisstore.Channel(key))
		b.takeMembers(alice, time.Minute, keyX, keyY)
		reply(b, b.Refresh(time.Now(), member(keyX, alice), time.Second))
		if r := reply(b, b.Release(time.Now(), member(keyX, alice))); r.Notified != 1 {
			t.Errorf("release: got %+v, want one subscriber", r)
		}
		reply(b, b.Clear(time.Now(), []redisstore.Suspicion{{Kind: kinds.Group, Key: keyY, Fields: []string{alice}}}))
		b.takeMembers(alice, time.Minute, keyX)
		reply(b, b.Force(time.Now(), kinds.Group, keyX))
		sub.wantOnly("1", "1", "1", "1", "end")
	})
}

// If Redis refuses PEXPIRE, nothing is taken and nothing changes, because no client would ever clear it up.
func TestGroup_DeniedTTL(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire")
	denied(app, app.Acquire(time.Now(), member(keyX, bob), redisstore.Terms{Lease: time.Hour}))
	denied(app, app.AcquireAll(time.Now(), kinds.Group, []string{keyX, keyY}, bob, time.Hour))
	all.wantGone(key)
	all.takeMembers(alice, time.Minute, keyX)
	denied(app, app.AcquireAll(time.Now(), kinds.Group, []string{keyY, redisstore.MemberKey(key, redisstore.GroupValue([]byte("z")))}, bob, time.Hour))
	denied(app, app.Hold(time.Now(), member(keyX, alice), 2, time.Hour))
	denied(app, app.Refresh(time.Now(), member(keyX, alice), time.Hour))
	denied(app, app.HandOff(time.Now(), member(keyX, alice), bob, redisstore.Terms{Lease: time.Hour}))
	all.wantMember(fieldX, alice, "1", time.Minute)
	all.wantFields(fieldY, 0)
}

// A key of another type, or a hash that is not a group lock, is left alone.
func TestGroup_OtherLayouts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.HSet(t.Context(), key, fieldX, "somebody")
		force := b.Force(time.Now(), kinds.Group, keyX)
		if _, _, err := force.Wait(t.Context(), soon()); !errors.Is(err, redisstore.ErrNotALock) {
			t.Errorf("force: got %v, want ErrNotALock", err)
		}
		b.wantHolders(key, map[string]string{fieldX: "somebody"})
		b.rdb.Set(t.Context(), "text", "no hash", 0)
		text := redisstore.MemberKey("text", fieldX)
		acquire := b.Acquire(time.Now(), member(text, alice), redisstore.Terms{Lease: time.Minute})
		if _, _, err := acquire.Wait(t.Context(), soon()); !wire.WrongType(err) {
			t.Errorf("acquire: got %v, want WRONGTYPE", err)
		}
		if v := b.Renew(t.Context(), []redisstore.Claim{member(text, alice)}, time.Minute); v[0].Held || v[0].Err != nil {
			t.Errorf("renewal of a text: got %+v", v[0])
		}
	})
}
