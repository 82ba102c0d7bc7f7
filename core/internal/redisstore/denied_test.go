package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// without returns b, whose user may call all commands, and a store whose user may call all except the given
// ones.
func (b *bench) without(commands ...string) (all, user *bench) {
	b.t.Helper()
	rules := []any{"acl", "setuser", "app", "on", "nopass", "~*", "&*", "+@all"}
	for _, command := range commands {
		rules = append(rules, "-"+command)
	}
	err := b.rdb.Do(b.t.Context(), rules...).Err()
	if err != nil {
		b.t.Fatal(err)
	}
	return b, newBench(b.t, b.clientOf("app"))
}

// denied requires that Redis answers with an error and has changed nothing.
func denied[T any](b *bench, call redisstore.Call[T]) {
	b.t.Helper()
	_, fate, err := call.Wait(context.Background(), soon())
	if fate != wire.Answered || !wire.Rejects(err) {
		b.t.Errorf("got %v (fate %d), want an answered error that changed nothing", err, fate)
	}
	if text, _ := redisstore.KnownText(err); strings.Contains(text, "withheld") {
		b.t.Errorf("logs contain only %q of %q", text, err)
	}
}

// If the TTL of a lock cannot be set, the lock is not taken, because no client would ever clear it up.
func TestStore_Acquire_DeniedTTL(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire", "del")
	for range 2 { // executed twice
		for _, kind := range []*redisstore.Kind{kinds.Reentrant, kinds.Fenced, kinds.Spin, kinds.Fair} {
			denied(app, app.Acquire(time.Now(), redisstore.Claim{Kind: kind, Key: key, Field: alice}, redisstore.Terms{Lease: time.Minute}))
			all.wantGone(key)
		}
		denied(app, app.AcquireAll(time.Now(), kinds.Reentrant, []string{"a", "b"}, alice, time.Minute))
		all.wantGone("a")
		all.wantGone("b")
	}
}

// If a TTL cannot be set, locks that existed before the call do not change.
func TestStore_AcquireAll_DeniedTTL(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire", "del")
	all.acquire("a", alice, time.Minute)
	reply(all, all.Hold(time.Now(), claim("a", alice), 2, 0))
	all.acquire("d", bob, time.Hour)
	denied(app, app.AcquireAll(time.Now(), kinds.Reentrant, []string{"a", "b", "c"}, alice, time.Hour))
	if got := reply(app, app.AcquireAll(time.Now(), kinds.Reentrant, []string{"b", "d"}, alice, time.Hour)); got.Refusal == nil || got.Refusal.Holder != bob {
		t.Errorf("got %+v, want a refusal because of bob", got)
	}
	all.wantHolders("a", map[string]string{alice: "2"})
	all.wantTTL("a", time.Minute)
	all.wantHolders("d", map[string]string{bob: "1"})
	all.wantTTL("d", time.Hour)
	all.wantGone("b")
	all.wantGone("c")
}

// If Redis cannot remember an operation for as long as it may be sent again, Redis does not execute it. The
// operation does not count as executed when it is sent again.
func TestStore_Settle_DeniedTTL(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire")
	all.rdb.Set(t.Context(), key, 5, 0)
	taker := redisstore.Claim{Kind: kinds.PlainSemaphore, Key: key, Field: "a:take:2"}
	for range 2 { // executed twice
		denied(app, app.Acquire(time.Now(), taker, redisstore.Terms{}))
		for _, op := range []string{"b:give:1", "c:take:2"} { // one is undone
			if found := reply(app, app.Settle(time.Now(), kinds.PlainSemaphore, key, []string{op})); found[0].Err == nil {
				t.Errorf("%s: got %+v", op, found[0])
			}
		}
		all.wantCount("5")
		all.wantGone(operationsKey)
	}
	reply(all, all.Acquire(time.Now(), taker, redisstore.Terms{}))
	all.rdb.Persist(t.Context(), operationsKey)
	for range 2 {
		if found := reply(app, app.Settle(time.Now(), kinds.PlainSemaphore, key, []string{taker.Field})); found[0].Err == nil {
			t.Errorf("got %+v", found[0])
		}
		all.wantCount("3")
	}
	reply(all, all.Settle(time.Now(), kinds.PlainSemaphore, key, []string{taker.Field}))
	all.wantCount("5")
}

// If one key cannot be read, the operations on the other keys are still executed.
func TestStore_Settle_UnreadableKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), operationsKey, "x", 0)
		b.rdb.Set(t.Context(), leasesKey, "x", 0)
		b.rdb.Set(t.Context(), "other", 1, 0)
		for kind, op := range map[*redisstore.Kind]string{
			kinds.PlainSemaphore: "a:take:1", kinds.PermitSemaphore: strings.Repeat("a", 32), kinds.Latch: "a:down:1",
		} {
			found := reply(b, b.Clear(time.Now(), []redisstore.Suspicion{
				{Kind: kind, Key: key, Fields: []string{op}}, {Kind: kind, Key: "other", Fields: []string{"b:begin:1", "c:set:1"}},
			}))
			if len(found[0].Fields) != 0 || found[1].Err != nil {
				t.Errorf("%s: got %+v", kind.Name, found)
			}
		}
	})
}
