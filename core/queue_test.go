package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestHandOff_IsOneScriptWithoutMessage(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		core.LetRunsLast(locks)
		b.Warm(locks)
		sub := b.SubscribeTo(t, locktest.ChannelOf("k"))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := make(chan *core.Hold, 1)
		go func() {
			_, h, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Hour))
			locktest.WantOK(t, err)
			next <- h
		}()
		locktest.AwaitWaiters(t, locks, 1)
		before := sent.Hits()
		locktest.MustRelease(t, hold)
		got := <-next
		if n := sent.Hits() - before; n > 2 { // two with the NOSCRIPT of the first hand-off
			t.Errorf("got %d scripts", n)
		}
		b.WantCount(got, "1")
		b.WantTTL("k", time.Hour-time.Minute, time.Hour+reserve) // its lease and the reserve
		if got.Field() == hold.Field() {
			t.Error("the field was not fresh")
		}
		b.Publish(t.Context(), locktest.ChannelOf("k"), "end")
		sub.Want("end")
		locktest.MustRelease(t, got)
		sub.Want("0")
	})
}

// reserve is the time by which a hand-off extends a fixed lease in Redis.
const reserve = 100 * time.Millisecond
