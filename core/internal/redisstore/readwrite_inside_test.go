package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// until is the field with the end of a writer's lease while readers keep the lock for longer.
const until = "interlock_until"

// inside lets alice write for a minute and bob read inside that hold for an hour.
func (b *bench) inside() {
	b.t.Helper()
	b.writes(writer, time.Minute)
	b.gets(reading(bob), redisstore.Terms{Lease: time.Hour, Under: writer})
}

// wantUntil requires the recorded end of the writer's lease; 0 for none.
func (b *bench) wantUntil(lease time.Duration) {
	b.t.Helper()
	note, ok := strings.CutPrefix(b.rdb.HGet(b.t.Context(), key, until).Val(), "@")
	switch {
	case lease == 0:
		if b.rdb.HExists(b.t.Context(), key, until).Val() {
			b.t.Errorf("the end of the writer is recorded: %s", note)
		}
	case !ok:
		b.t.Errorf("no end of the writer, want one in %s", lease)
	default:
		ms, err := time.ParseDuration(note + "ms")
		must(b.t, err)
		now, err := b.rdb.Time(b.t.Context()).Result()
		must(b.t, err)
		if rest := time.UnixMilli(ms.Milliseconds()).Sub(now); rest > lease || rest < lease-10*time.Second {
			b.t.Errorf("the writer ends in %s, want about %s", rest, lease)
		}
	}
}

// runsOut makes the lease of the writer expire, but not the lease of its reader.
func (b *bench) runsOut() {
	b.t.Helper()
	must(b.t, b.rdb.HSet(b.t.Context(), key, until, "@1000000000000").Err())
}

// While a reader keeps the lock for longer than the writer's lease, a field contains the end of that lease.
// Operations on the writer's lease update the field.
func TestReadWrite_Inside_NoteOfTheWritersEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		sub := b.subscribe(rwChannel)
		b.inside()
		b.wantAround(key, time.Hour)
		b.wantUntil(time.Minute)
		if ttl := b.refused(reading(alice), redisstore.Terms{Lease: time.Minute}, writer); ttl > time.Minute {
			t.Errorf("refused for %s, want the writer's lease", ttl)
		}
		reply(b, b.Hold(time.Now(), writing(writer), 2, 2*time.Minute))
		b.wantUntil(2 * time.Minute)
		reply(b, b.Hold(time.Now(), writing(writer), 1, time.Second))
		b.wantUntil(2 * time.Minute)
		for _, lease := range []time.Duration{3 * time.Minute, time.Minute, 0} {
			if v := b.Renew(t.Context(), []redisstore.Claim{writing(writer)}, lease); !v[0].Held || v[0].Err != nil {
				t.Fatalf("got %+v", v[0])
			}
			b.wantUntil(3 * time.Minute)
		}
		b.wantAround(key, time.Hour)
		reply(b, b.Refresh(time.Now(), reading(bob), 2*time.Hour))
		reply(b, b.Hold(time.Now(), reading(bob), 1, 3*time.Hour))
		b.Renew(t.Context(), []redisstore.Claim{reading(bob)}, 4*time.Hour)
		b.wantUntil(3 * time.Minute)
		b.wantAround(key, 4*time.Hour)
		reply(b, b.Refresh(time.Now(), writing(writer), 5*time.Hour))
		b.wantUntil(0)
		b.wantAround(key, 5*time.Hour)
		reply(b, b.Refresh(time.Now(), writing(writer), time.Minute))
		b.wantUntil(time.Minute)
		reply(b, b.HandOff(time.Now(), reading(bob), "marker:1", redisstore.Terms{Lease: time.Hour}))
		b.wantUntil(time.Minute)
		b.wantAround(key, time.Hour)
		b.lets(reading("marker:1"), false) // the TTL falls, so waiters that sleep until its end are notified
		b.wantHolders(key, map[string]string{"mode": "write", writer: "1"})
		b.wantAround(key, time.Minute)
		b.gets(reading(bob), redisstore.Terms{Lease: time.Hour, Under: writer})
		b.lets(writing(writer), false)
		b.wantHolders(key, map[string]string{"mode": "read", bob: "1"})
		b.lets(reading(bob), false)
		b.wantKeys()
		sub.wantOnly("1", "0", "1", "1", "0", "end")
	})
}

// If an operation of an inner reader extends the lock, it records the end of the writer's lease.
func TestReadWrite_Inside_ReaderNotesTheEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, longer := range map[string]func(){
			"hold":    func() { reply(b, b.Hold(time.Now(), reading(bob), 2, time.Hour)) },
			"refresh": func() { reply(b, b.Refresh(time.Now(), reading(bob), time.Hour)) },
			"renew":   func() { b.Renew(t.Context(), []redisstore.Claim{reading(bob)}, time.Hour) },
			"hand-off": func() {
				reply(b, b.HandOff(time.Now(), reading(bob), "marker:1", redisstore.Terms{Lease: time.Hour}))
			},
		} {
			b.rdb.FlushAll(t.Context())
			b.writes(writer, time.Minute)
			b.gets(reading(bob), redisstore.Terms{Lease: 10 * time.Second, Under: writer})
			b.wantUntil(0)
			longer()
			b.wantUntil(time.Minute)
			b.wantAround(key, time.Hour)
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// If the lease of a writer expires while an inner reader stays, the writer has lost the lock, whichever
// operation finds that first.
func TestReadWrite_Inside_WriterLeaseEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, change := range b.changes(writing(writer)) {
			b.rdb.FlushAll(t.Context())
			b.inside()
			b.runsOut()
			if change() {
				t.Errorf("%s reports that the writer holds the lock", name)
			}
			b.wantHolders(key, map[string]string{"mode": "read", bob: "1"})
			b.wantAround(key, time.Hour)
		}
		for name, look := range map[string]func(){
			"a reader": func() { b.reads(alice, time.Minute) },
			"a reader without a write hold": func() {
				b.gets(reading(alice), redisstore.Terms{Lease: time.Minute, Under: writer})
			},
			"a writer": func() { b.refused(writing(nextWriter), redisstore.Terms{Lease: time.Minute}, bob) },
			"its own":  func() { b.Renew(t.Context(), []redisstore.Claim{reading(bob)}, time.Minute) },
		} {
			b.rdb.FlushAll(t.Context())
			b.inside()
			b.runsOut()
			if got := reply(b, b.State(time.Now(), kinds.Write, key)).Holders; len(got) != 1 || got[bob] != "1" {
				t.Errorf("state: got %v", got)
			}
			look()
			if got := b.rdb.HMGet(t.Context(), key, "mode", writer, until).Val(); got[0] != "read" || got[1] != nil || got[2] != nil {
				t.Errorf("%s leaves %v", name, got)
			}
		}
		b.rdb.FlushAll(t.Context())
		b.inside()
		b.runsOut()
		if reply(b, b.Force(time.Now(), kinds.Write, key)) || !reply(b, b.Force(time.Now(), kinds.Read, key)) {
			t.Error("want that only a force release of the read lock frees the lock")
		}
		b.wantKeys()
		b.inside()
		b.runsOut()
		b.lets(reading(bob), false)
		b.wantKeys()
	})
}
