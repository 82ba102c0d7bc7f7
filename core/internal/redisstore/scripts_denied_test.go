package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// without adds a user who may do everything but some commands, and all is who set it up.
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

// denied wants Redis to answer with an error that says that nothing was changed.
func denied[T any](b *bench, call redisstore.Call[T]) {
	b.t.Helper()
	_, fate, err := call.Wait(context.Background(), soon())
	if fate != redisstore.Answered || !redisstore.Rejects(err) {
		b.t.Errorf("got %v (fate %d), want an answered error that changed nothing", err, fate)
	}
	if text, _ := redisstore.KnownText(err); strings.Contains(text, "withheld") {
		b.t.Errorf("logs say only %q of %q", text, err)
	}
}

// A lock that cannot have a lease is not taken: without a TTL nobody would ever clear it up.
func TestAcquire_TTLForbiddenLeavesNothing(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire", "del")
	for range 2 { // executed twice
		for _, kind := range []*redisstore.Kind{kinds.Reentrant, kinds.Fenced, kinds.Spin} {
			denied(app, app.Acquire(time.Now(), redisstore.Claim{Kind: kind, Key: key, Field: alice}, time.Minute))
			all.wantGone(key)
		}
		denied(app, app.AcquireAll(time.Now(), kinds.Reentrant, []string{"a", "b"}, alice, time.Minute))
		all.wantGone("a")
		all.wantGone("b")
	}
}

// What was there before the call stays, as it was.
func TestAcquireAll_TTLForbiddenLeavesWhatWasThere(t *testing.T) {
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

// Nor is it handed over: the old holder, who is told of the error, can free it.
func TestHandoff_TTLForbiddenChangesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []*redisstore.Kind{kinds.Reentrant, kinds.Fenced, kinds.Spin} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			all, app := onServer(t).without("pexpire")
			mine := redisstore.Claim{Kind: kind, Key: key, Field: alice}
			reply(all, all.Acquire(time.Now(), mine, time.Minute))
			for range 2 { // executed twice
				denied(app, app.HandOff(time.Now(), mine, bob, time.Hour))
				all.wantHolders(key, map[string]string{alice: "1"})
				all.wantTTL(key, time.Minute)
			}
			if !reply(app, app.Release(time.Now(), mine)).Mine {
				t.Error("the release found another holder")
			}
			all.wantGone(key)
		})
	}
}

// Nor is a lock entered again without the lease that was asked for.
func TestSetHold_TTLForbiddenChangesNothing(t *testing.T) {
	t.Parallel()
	all, app := onServer(t).without("pexpire")
	all.acquire(key, alice, time.Minute)
	denied(app, app.Hold(time.Now(), claim(key, alice), 2, time.Hour))
	all.wantHolders(key, map[string]string{alice: "1"})
	all.wantTTL(key, time.Minute)
}
