package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// witness is a holder and a Redis. It checks that its caller holds no mutex. During the check, no other
// goroutine of the bubble runs.
type witness struct {
	lease Lease
	dog   *Watchdog
	says  redisstore.Verdict

	mu   sync.Mutex
	seen []string
}

func (w *witness) look(call string) {
	for name, m := range map[string]*sync.Mutex{"watchdog": &w.dog.mu, "lease": &w.lease.mu} {
		if m.TryLock() {
			m.Unlock()
		} else {
			call += " under the mutex of the " + name
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, call)
}

func (w *witness) Lost(error) { w.look("lost") }

func (w *witness) Renewed(error, time.Duration) { w.look("renewed") }

func (w *witness) NodeName(context.Context, string) string {
	w.look("name")
	return ""
}

func (w *witness) Renew(context.Context, []redisstore.Claim, time.Duration) []redisstore.Verdict {
	w.look("renew")
	return []redisstore.Verdict{w.says}
}

var errTest = errors.New("test")

// The package never calls a Holder or a Renewer while it holds a mutex.
func TestNoCallUnderAMutex(t *testing.T) {
	t.Parallel()
	none := redisstore.Verdict{}
	for name, c := range map[string]struct {
		says redisstore.Verdict
		way  func(l *Lease)
		want []string
	}{
		"lost":       {none, func(l *Lease) { l.Lose(errTest) }, []string{"lost"}},
		"clock":      {none, func(l *Lease) { _ = l.CheckClock(time.Now().Add(time.Hour)) }, []string{"lost"}},
		"deadline":   {none, func(*Lease) { time.Sleep(time.Minute) }, []string{"lost"}},                                               // virtual time
		"wall clock": {none, func(l *Lease) { l.watchdog.AdvanceWallClock(time.Hour); time.Sleep(2 * time.Second) }, []string{"lost"}}, // virtual time
		"asked":      {none, func(l *Lease) { l.Doubt() }, []string{"name", "renew", "lost"}},
		"gone":       {none, func(l *Lease) { l.Renew(time.Now()); time.Sleep(10 * time.Second) }, []string{"name", "renew", "lost"}}, // virtual time
		"renewed": {redisstore.Verdict{Held: true}, func(l *Lease) {
			l.Renew(time.Now())
			time.Sleep(10 * time.Second) // virtual time
		}, []string{"name", "renew", "renewed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				life, end := context.WithCancel(t.Context())
				w := &witness{says: c.says}
				var work sync.WaitGroup
				spawn := func(do func(ctx context.Context)) { work.Go(func() { do(life) }) }
				w.dog = NewWatchdog(Config{
					Start: time.Now(), TTL: 30 * time.Second, Timeout: 5 * time.Second,
					Renewer: w, Spawn: spawn, Over: errTest, Gone: errTest,
				})
				spawn(w.dog.Run)
				w.dog.Open(&w.lease, redisstore.Claim{Key: "k", Field: "f"}, w, time.Now(), 20*time.Second)
				w.lease.Watch(time.Now())
				synctest.Wait()
				c.way(&w.lease)
				synctest.Wait()
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.seen) != len(c.want) {
					t.Errorf("calls: got %q, want %q", w.seen, c.want)
				}
				for i := range min(len(w.seen), len(c.want)) {
					if w.seen[i] != c.want[i] {
						t.Errorf("call %d: got %q, want %q", i, w.seen[i], c.want[i])
					}
				}
				end()
				work.Wait()
			})
		})
	}
}

// All methods run concurrently, for the race detector and to find mutexes that goroutines lock in two orders.
func TestAllPathsAtOnce(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	spawn := func(do func(ctx context.Context)) { work.Go(func() { do(life) }) }
	dog := NewWatchdog(Config{
		Start: time.Now(), TTL: 3 * time.Millisecond, Timeout: time.Second,
		Renewer: yes{}, Spawn: spawn, Over: errTest, Gone: errTest,
	})
	spawn(dog.Run)
	var all sync.WaitGroup
	for range 4 {
		held := make([]Lease, 4)
		for i := range held {
			l := &held[i]
			dog.Open(l, redisstore.Claim{Key: "k", Field: "f"}, yes{}, time.Now(), time.Hour)
			for _, path := range []func(){
				func() { l.Watch(time.Now()) }, func() { l.Renew(time.Now()) }, l.StopRenewal, l.Doubt, l.RecordNoAnswer,
				func() { l.Acknowledge(time.Now(), time.Hour) }, func() { l.Lower(time.Now(), time.Minute) },
				func() { l.LimitTrust(time.Minute) }, func() { _ = l.CheckClock(time.Now()) }, func() { l.Renewing() },
				func() { l.Ask(time.Minute) }, func() { l.Landing(); l.Longest(); l.Remaining(time.Now()) },
				func() { dog.Leases(); dog.Count(); dog.Drained(); dog.AdvanceWallClock(0) },
				func() { _ = l.BeginRelease(); l.End() }, func() { l.Lose(errTest) },
			} {
				all.Go(func() {
					for range 300 {
						path()
					}
				})
			}
		}
	}
	all.Wait()
	<-dog.Drained()
	end()
	work.Wait()
}

// yes is a Redis that confirms every claim, and a holder that does nothing.
type yes struct{}

func (yes) Lost(error)                              {}
func (yes) Renewed(error, time.Duration)            {}
func (yes) NodeName(context.Context, string) string { return "" }
func (yes) Renew(_ context.Context, claims []redisstore.Claim, _ time.Duration) []redisstore.Verdict {
	verdicts := make([]redisstore.Verdict, len(claims))
	for i := range verdicts {
		verdicts[i].Held = true
	}
	return verdicts
}
