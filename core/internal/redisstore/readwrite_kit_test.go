package redisstore_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

const (
	writer     = alice + ":write"
	nextWriter = bob + ":write"
	rwChannel  = "redisson_rwlock:{order:42}"
	mark       = "{order:42}:interlock_writer"
)

// timeoutKey returns the n-th timeout key of a reader of order:42.
func timeoutKey(field, n string) string { return "{order:42}:" + field + ":rwlock_timeout:" + n }

func reading(field string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.Read, Key: key, Field: field}
}

func writing(field string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.Write, Key: key, Field: field}
}

// reads and writes take the lock and require success.
func (b *bench) reads(field string, lease time.Duration) {
	b.t.Helper()
	b.gets(reading(field), redisstore.Terms{Lease: lease})
}

func (b *bench) writes(field string, lease time.Duration) {
	b.t.Helper()
	b.gets(writing(field), redisstore.Terms{Lease: lease})
}

func (b *bench) gets(c redisstore.Claim, terms redisstore.Terms) {
	b.t.Helper()
	if got := reply(b, b.Acquire(time.Now(), c, terms)); got.Refusal != nil {
		b.t.Fatalf("%s for %s: refused by %+v", c.Kind.Name, c.Field, got.Refusal)
	}
}

// refused requires that an attempt is refused because of a holder.
func (b *bench) refused(c redisstore.Claim, terms redisstore.Terms, holder string) time.Duration {
	b.t.Helper()
	got := reply(b, b.Acquire(time.Now(), c, terms)).Refusal
	if got == nil || got.Holder != holder {
		b.t.Fatalf("%s for %s: got %+v, want a refusal because of %s", c.Kind.Name, c.Field, got, holder)
	}
	return got.TTL
}

// lets releases a hold. With kept, other holders must keep the lock, so that Redis sends no message.
func (b *bench) lets(c redisstore.Claim, kept bool) {
	b.t.Helper()
	if got := reply(b, b.Release(time.Now(), c)); !got.Mine || got.Kept != kept {
		b.t.Errorf("release of %s: got %+v, want kept: %v", c.Field, got, kept)
	}
}

// wantAround requires a TTL.
func (b *bench) wantAround(key string, ttl time.Duration) {
	b.t.Helper()
	if got := b.rdb.PTTL(context.Background(), key).Val(); got > ttl || got < ttl-5*time.Second || got <= 0 {
		b.t.Errorf("PTTL %s: got %s, want about %s", key, got, ttl)
	}
}

// wantKeys requires exactly these keys in Redis.
func (b *bench) wantKeys(keys ...string) {
	b.t.Helper()
	got := b.rdb.Keys(context.Background(), "*").Val()
	slices.Sort(got)
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		b.t.Errorf("keys: got %q, want %q", got, keys)
	}
}

// dies lets the lease of a reader expire.
func (b *bench) dies(field string) {
	b.t.Helper()
	if n := b.rdb.Del(context.Background(), timeoutKey(field, "1")).Val(); n != 1 {
		b.t.Errorf("%s had no timeout key", field)
	}
}

// changes returns the operations on the holds of readers and writers, by name. Each reports whether Redis had
// the holder.
func (b *bench) changes(c redisstore.Claim) map[string]func() bool {
	return map[string]func() bool{
		"hold":    func() bool { return reply(b, b.Hold(time.Now(), c, 2, time.Hour)) },
		"refresh": func() bool { return reply(b, b.Refresh(time.Now(), c, time.Hour)).Mine },
		"hand-off": func() bool {
			return reply(b, b.HandOff(time.Now(), c, "new"+c.Kind.Suffix, redisstore.Terms{Lease: time.Hour})).Mine
		},
		"release": func() bool { return reply(b, b.Release(time.Now(), c)).Mine },
		"renew": func() bool {
			v := b.Renew(context.Background(), []redisstore.Claim{c}, time.Hour)
			return v[0].Held || v[0].Err != nil
		},
	}
}

// snapshot returns the whole content of Redis, and for each key whether it has a TTL.
func (b *bench) snapshot() map[string]string {
	all := make(map[string]string)
	for _, key := range b.rdb.Keys(context.Background(), "*").Val() {
		if b.rdb.Type(context.Background(), key).Val() == "hash" {
			for field, count := range b.rdb.HGetAll(context.Background(), key).Val() {
				all[key+" "+field] = count
			}
			continue
		}
		all[key] = b.rdb.Get(context.Background(), key).Val()
	}
	return all
}

func (b *bench) wantUnchanged(t *testing.T, what string, before map[string]string) {
	t.Helper()
	if after := b.snapshot(); !maps.Equal(before, after) {
		t.Errorf("%s changed %v to %v", what, before, after)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within polls until ok. Its time limit is reached only if the test fails.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) { // between two looks
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}
