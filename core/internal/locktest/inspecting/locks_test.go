package inspecting_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// listAll returns the whole list of locks by key.
func listAll(t *testing.T, locks *core.Client, q core.LockQuery) map[string]core.LockEntry {
	t.Helper()
	all := map[string]core.LockEntry{}
	var looked, keys int64
	for {
		page, err := locks.Locks(t.Context(), q)
		locktest.Must(t, err)
		seen := map[string]bool{}
		for _, e := range page.Locks {
			if seen[e.Key] {
				t.Errorf("%s appears twice in a page", e.Key)
			}
			seen[e.Key], all[e.Key] = true, e
		}
		looked, keys = looked+page.Looked, page.Keys
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	if looked != keys {
		t.Errorf("the pages have looked at %d keys, want %d", looked, keys)
	}
	return all
}

// wantListed checks that a list has these keys, with these kinds.
func wantListed(t *testing.T, got map[string]core.LockEntry, want map[string]core.Kind) {
	t.Helper()
	kinds := map[string]core.Kind{}
	for key, e := range got {
		kinds[key] = e.Kind
	}
	if !maps.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

// The list has the locks of every kind with their holders. It has neither the auxiliary keys of locks nor keys that
// are not locks. Numbers are listed on request.
func TestLocks_OfEveryKind(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, ctx := b.Locks(core.WithPrefix("shop:")), context.Background()
		want := map[string]core.Kind{}
		for lock, kind := range map[*core.Lock]core.Kind{
			new(locks.Lock("plain")): core.KindReentrant, new(locks.FencedLock("fenced{1}")): core.KindFenced,
			new(locks.ReadLock("read")): core.KindRead, new(locks.ReadLock("read{1}")): core.KindRead, new(locks.WriteLock("write")): core.KindWrite,
			new(locks.Semaphore("permits", 2).Lock): core.KindSemaphore, new(locks.Semaphore("permitsOf(1)", 2).Lock): core.KindSemaphore,
			new(locks.FairLock("fair")): core.KindFair,
		} {
			_, hold := locktest.MustAcquire(t, t.Context(), *lock)
			want[hold.Key()] = kind
		}
		locktest.Must(t, b.RPush(ctx, "redisson_lock_queue:{shop:fair}", locktest.Stranger).Err())
		locktest.Must(t, b.RPush(ctx, "redisson_lock_queue:{shop:free}", locktest.Stranger).Err())
		locktest.Must(t, b.RPush(ctx, "redisson_lock_queue:shop:free{1}", locktest.Stranger).Err())
		want["shop:free"], want["shop:free{1}"] = core.KindFair, core.KindFair
		locktest.Must(t, b.HSet(ctx, "shop:order", "name", "Ada").Err())
		locktest.Must(t, b.Set(ctx, "shop:text", "Ada", 0).Err())
		locktest.Must(t, b.Set(ctx, "shop:text{1}::interlock_fence", 5, 0).Err()) // of package fence
		locktest.Must(t, b.HSet(ctx, "other:lock", locktest.Stranger, 1).Err())
		locktest.Must(t, b.HSet(ctx, "my:shop:lock", locktest.Stranger, 1).Err())
		_, err := locks.PlainSemaphore("count").TrySetPermits(t.Context(), 5)
		locktest.Must(t, err)

		wantListed(t, listAll(t, locks, core.LockQuery{}), want)
		wantListed(t, listAll(t, locks, core.LockQuery{Limit: 1}), want)
		withCounts := maps.Clone(want)
		withCounts["shop:count"] = core.KindPlainSemaphore
		wantListed(t, listAll(t, locks, core.LockQuery{Counts: true}), withCounts)
		want["other:lock"], want["my:shop:lock"] = core.KindReentrant, core.KindReentrant
		wantListed(t, listAll(t, b.Locks(), core.LockQuery{}), want)
		wantListed(t, listAll(t, locks, core.LockQuery{Prefix: "other:"}), map[string]core.Kind{"other:lock": core.KindReentrant})
	})
}

// A prefix is a text, not a pattern.
func TestLocks_PrefixIsNotAPattern(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		for _, prefix := range []string{"a*", "a?", "a[b]", `a\`, "a]", "a-", "a\n", "a\x00", `a"`, "^", "a\xff"} {
			if !utf8.ValidString(prefix) && b.Embedded != nil {
				continue // the embedded Redis panics
			}
			b.Take(prefix+"b", locktest.Stranger, time.Minute)
			b.Take("abc", locktest.Stranger, time.Minute)
			wantListed(t, listAll(t, b.Locks(), core.LockQuery{Prefix: prefix}), map[string]core.Kind{prefix + "b": core.KindReentrant})
			locktest.Must(t, b.Del(context.Background(), prefix+"b").Err())
		}
	})
}

// A page looks at a bounded number of keys. All pages together list every lock that exists throughout, although other
// keys come and go. The embedded Redis returns all keys at once.
func TestLocks_PagesAreBounded(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, ctx := b.Locks(), context.Background()
	const stay = 500
	pipe := b.Pipeline()
	for i := range stay {
		pipe.HSet(ctx, fmt.Sprint("stays:", i), locktest.Stranger, 1)
	}
	_, err := pipe.Exec(ctx)
	locktest.Must(t, err)
	found, pages := map[string]bool{}, 0
	for q := (core.LockQuery{Limit: 50}); ; pages++ {
		page, err := locks.Locks(t.Context(), q)
		locktest.Must(t, err)
		if len(page.Locks) > 150 { // SCAN returns a few keys more than requested
			t.Errorf("a page of %d locks, want about 50", len(page.Locks))
		}
		for _, e := range page.Locks {
			found[e.Key] = true
		}
		pipe := b.Pipeline()
		for i := range 300 { // the table of keys grows and shrinks
			pipe.HSet(ctx, fmt.Sprintf("x:%d:%d", pages, i), locktest.Stranger, 1)
			pipe.Del(ctx, fmt.Sprintf("x:%d:%d", pages-3, i))
		}
		_, err = pipe.Exec(ctx)
		locktest.Must(t, err)
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	stays := slices.DeleteFunc(slices.Collect(maps.Keys(found)), func(key string) bool { return !strings.HasPrefix(key, "stays:") })
	if len(stays) != stay || pages < 5 {
		t.Errorf("found %d of %d in %d pages", len(stays), stay, pages)
	}
}

// Locks refuses a limit below 0 and an invalid cursor.
func TestLocks_Refusals(t *testing.T) {
	t.Parallel()
	locks := locktest.Embedded(t).Locks()
	for _, q := range []core.LockQuery{{Limit: -1}, {Cursor: "?"}, {Cursor: "0"}, {Cursor: "bm8"}} {
		_, err := locks.Locks(t.Context(), q)
		locktest.WantOutcome(t, fmt.Sprint(q), err, core.ErrInvalid)
	}
}
