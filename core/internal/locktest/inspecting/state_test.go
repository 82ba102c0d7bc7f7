package inspecting_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// State and ForceRelease over a slow connection wait for the reply and send no second command.
func TestState_WaitsForSlowReplies(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks, other := r.Behind(), r.Beside()
	_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("k"), core.LeaseTime(time.Hour))
	locktest.Slow(150 * time.Millisecond).Begin(r.Proxy)
	state, err := locks.Lock("k").State(t.Context())
	if err != nil || len(state.Holders) != 1 {
		t.Errorf("State: got %+v, %v", state, err)
	}
	locktest.WantGot(t, "ForceRelease", true)(locks.Lock("k").ForceRelease(t.Context()))
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
}

func TestState_ReadsHoldersAndTTL(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks(core.WithPrefix("p:")).Lock("k")
		state, err := l.State(t.Context())
		if err != nil || state.Key != "p:k" || len(state.Holders) != 0 || state.TTL != 0 {
			t.Errorf("free: got %+v, %v", state, err)
		}
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		state, err = l.State(t.Context())
		if err != nil || state.Holders[hold.Field()] != 2 || len(state.Holders) != 1 || state.TTL <= 20*time.Second || state.TTL > 30*time.Second {
			t.Errorf("held: got %+v, %v", state, err)
		}
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)

		b.HSet(t.Context(), "p:k", locktest.Stranger, 3) // no TTL
		state, err = l.State(t.Context())
		if err != nil || state.Holders[locktest.Stranger] != 3 || state.TTL >= 0 {
			t.Errorf("without TTL: got %+v, %v", state, err)
		}
		b.HSet(t.Context(), "p:k", "mode", "read")
		_, err = l.State(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		b.Del(t.Context(), "p:k")
		b.Set(t.Context(), "p:k", "text", 0)
		_, err = l.State(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
	})
}

func TestMultiLock_HasNoStateOrForceRelease(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().MultiLock("a", "b")
		_, err := l.State(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		_, err = l.ForceRelease(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
	})
}
