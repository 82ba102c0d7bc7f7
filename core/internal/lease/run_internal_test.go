package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The scheduler first finds that the deadline has passed and then marks the lease as lost. A reply between
// these two steps keeps the lease under watch without a gap. So a caller that waits until no lease is left
// continues to wait.
func TestWatchdog_ReplyBetweenTwoStepsOfTheScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := NewWatchdog(Config{Start: time.Now(), TTL: 30 * time.Second, Over: errTest, Gone: errTest})
		l, h := &Lease{}, &witness{dog: dog}
		dog.Open(l, redisstore.Claim{Key: "k", Field: "f"}, h, time.Now(), time.Second)
		l.Watch(time.Now())
		drained := dog.Drained()
		now := time.Now().Add(time.Second)
		found := dog.collect(now)
		if len(found.over) != 1 {
			t.Fatalf("%d have ended", len(found.over))
		}
		l.Acknowledge(time.Now(), time.Minute) // this goroutine read the clock earlier
		select {
		case <-drained:
			t.Error("drained although the lease is held")
		default:
		}
		dog.endExpired(found.over, now)
		if !l.Held() || dog.Count() != 1 {
			t.Errorf("held %v, %d under watch", l.Held(), dog.Count())
		}
		life, end := context.WithCancel(t.Context())
		defer end()
		go dog.Run(life)
		time.Sleep(time.Minute) // virtual time
		synctest.Wait()
		if l.Loss() == nil || dog.Count() != 0 {
			t.Errorf("after the new deadline: loss %v, %d under watch", l.Loss(), dog.Count())
		}
	})
}
