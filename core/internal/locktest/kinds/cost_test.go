package kinds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// countedKind is a kind whose commands are counted.
type countedKind struct {
	constructor string
	of          func(*core.Client) core.Lock
	blocking    func(*core.Client) core.Lock
}

// excludingItself returns a kind whose holder excludes other callers of the same kind.
func excludingItself(constructor string, of func(*core.Client) core.Lock) countedKind {
	return countedKind{constructor, of, of}
}

func costs() []countedKind {
	write := func(c *core.Client) core.Lock { return c.WriteLock("k") }
	return []countedKind{
		excludingItself("Lock", func(c *core.Client) core.Lock { return c.Lock("k") }),
		excludingItself("MultiLock", func(c *core.Client) core.Lock { return c.MultiLock("k", "l", "m") }),
		excludingItself("GroupLock", func(c *core.Client) core.Lock { return c.GroupLock("k", "a", "b", "c") }),
		excludingItself("FencedLock", func(c *core.Client) core.Lock { return c.FencedLock("k") }),
		excludingItself("FairLock", func(c *core.Client) core.Lock { return c.FairLock("k") }),
		{"ReadLock", func(c *core.Client) core.Lock { return c.ReadLock("k") }, write},
		excludingItself("WriteLock", write),
		excludingItself("Semaphore", func(c *core.Client) core.Lock { return c.Semaphore("k", 1).Lock }),
	}
}

// TestKinds_Commands compares how many commands each kind takes with the table in examples/choosing.
func TestKinds_Commands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../examples/choosing/README.md")
	locktest.Must(t, err)
	for _, kind := range costs() {
		locktest.ParallelBubble(t, kind.constructor, func(t *testing.T, b *locktest.Redis) {
			free, waited := commands(t, b, kind.of, kind.blocking)
			row := rowOf(string(page), "`Client."+kind.constructor+"`")
			want := fmt.Sprintf("| %d, %d |", free, waited)
			if kind.constructor == "MultiLock" || kind.constructor == "GroupLock" { // each key or value has a separate message, in any order
				for round := 0; waited > 9 && round < 20; round++ {
					// After this time no client of the last round listens. Beside listeners, a client goes on
					// listening after its turn and needs one attempt less: 5 commands.
					locktest.Pass(10 * time.Second)
					_, waited = commands(t, b, kind.of, kind.blocking)
				}
				if waited >= 6 && waited <= 9 {
					want = fmt.Sprintf("| %d for three, mostly 6 to 9 |", free)
				}
			}
			if !strings.Contains(row, want) {
				t.Errorf("got %d commands for a free lock and %d for a lock after a wait, but the table has:\n%s", free, waited, row)
			}
		})
	}
}

// The table is true on a real server, too. A slow client attempts more often than the table says, never less often. So
// only one round of several has to match the table.
func TestKinds_CommandsOnAServer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../examples/choosing/README.md")
	locktest.Must(t, err)
	for _, kind := range costs() {
		row := rowOf(string(page), "`Client."+kind.constructor+"`")
		if slices.Contains([]string{"MultiLock", "GroupLock", "Semaphore"}, kind.constructor) {
			continue // messages and answers of these may cross
		} else if !strings.Contains(row, "| 2, 4 |") {
			t.Errorf("%s: the table has %q, want 2 and 4 commands", kind.constructor, row)
		}
		locktest.Parallel(t, kind.constructor, func(t *testing.T) {
			b := locktest.Real(t)
			proxy, rdb := faultproxy.Around(t, b.Client)
			locks, others := locktest.NewClient(t, rdb, locktest.Patient), b.Locks(locktest.Patient)
			_, hold := locktest.MustAcquire(t, t.Context(), kind.of(locks)) // the server knows the scripts from here on
			locktest.MustRelease(t, hold)
			sent := proxy.Watch(locktest.Scripts)
			for round := range 20 {
				before := sent.Hits()
				_, theirs := locktest.MustAcquire(t, t.Context(), kind.blocking(others))
				waiting := locktest.GoAcquire(context.Background(), kind.of(locks))
				locktest.Eventually(t, "an attempt before the subscription, and one after it", func() bool { return sent.Hits()-before >= 2 })
				locktest.MustRelease(t, theirs)
				locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
				switch n := sent.Hits() - before; {
				case n == 4:
					return
				case n < 4 || round == 19:
					t.Fatalf("got %d commands for a lock that was waited for, want 4", n)
				}
			}
		})
	}
}

// rowOf returns the first line of a table with a cell.
func rowOf(text, cell string) string {
	_, behind, _ := strings.Cut(text, "| "+cell+" |")
	row, _, _ := strings.Cut(behind, "\n")
	return row
}

// commands counts the scripts of a client for a free lock, and for a lock that another client holds and then
// releases.
func commands(t *testing.T, b *locktest.Redis, of, blocking func(*core.Client) core.Lock) (free, waited int) {
	t.Helper()
	proxy, rdb := faultproxy.Around(t, b.Client)
	locks := locktest.NewClient(t, rdb)
	_, hold := locktest.MustAcquire(t, t.Context(), of(locks)) // the server knows the scripts from here on
	locktest.MustRelease(t, hold)
	sent := proxy.Watch(locktest.Scripts)

	_, hold = locktest.MustAcquire(t, t.Context(), of(locks))
	locktest.MustRelease(t, hold)
	free = sent.Hits()

	_, theirs := locktest.MustAcquire(t, t.Context(), blocking(b.Locks()))
	_, _, err := of(locks).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.Pass(time.Second) // time to clear up
	locktest.WantSame(t, "commands for an acquisition that does not wait", sent.Hits()-free, 1)

	before := sent.Hits()
	waiting := locktest.GoAcquire(context.Background(), of(locks))
	time.Sleep(100 * time.Millisecond) // in the time of the bubble
	locktest.MustRelease(t, theirs)
	locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
	return free, sent.Hits() - before
}

// inside runs a function under a lock.
func inside(lock func(*core.Client) core.Lock) func(context.Context, *core.Client, func()) error {
	return func(ctx context.Context, locks *core.Client, body func()) error {
		return lock(locks).Do(ctx, func(context.Context) error {
			body()
			return nil
		})
	}
}

// sevenPermits runs a function with one of seven permits without leases.
func sevenPermits(ctx context.Context, locks *core.Client, body func()) error {
	s := locks.PlainSemaphore("k")
	if _, err := s.TrySetPermits(ctx, 7); err != nil {
		return err
	}
	if err := s.Acquire(ctx, 1); err != nil {
		return err
	}
	body()
	return s.Release(ctx, 1)
}

// Each of a hundred callers that wait in one client costs no more commands than a single caller, for every kind
// except the fair lock, whose waiters have separate places in Redis.
func TestKinds_CommandsPerAcquisitionAreConstant(t *testing.T) {
	t.Parallel()
	const callers, rounds = 100, 5
	for name, tt := range map[string]struct {
		do      func(context.Context, *core.Client, func()) error
		holders int32
		most    float64 // scripts
		gone    bool    // the key, at the end
	}{
		"reentrant":     {inside(func(c *core.Client) core.Lock { return c.Lock("k") }), 1, 2.5, true},
		"read":          {inside(func(c *core.Client) core.Lock { return c.ReadLock("k") }), callers, 2.5, true},
		"write":         {inside(func(c *core.Client) core.Lock { return c.WriteLock("k") }), 1, 2.5, true},
		"one permit":    {inside(func(c *core.Client) core.Lock { return c.Semaphore("k", 1).Lock }), 1, 4, false}, // a caller that gets a permit makes two others attempt
		"seven permits": {inside(func(c *core.Client) core.Lock { return c.Semaphore("k", 7).Lock }), 7, 3, false},
		"semaphore":     {sevenPermits, 7, 4, false}, // one script is for TrySetPermits
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, sent := b.Counted(locktest.Patient)
			locktest.Must(t, locks.Ready(t.Context()))
			before := sent.Hits()
			var held atomic.Int32
			locktest.Concurrently(callers, func(int) {
				for range rounds {
					err := tt.do(t.Context(), locks, func() {
						if held.Add(1) > tt.holders {
							t.Error("too many holders")
						}
						held.Add(-1)
					})
					locktest.WantOK(t, err)
				}
			})
			each := float64(sent.Hits()-before) / (callers * rounds)
			t.Logf("%.2f scripts per acquisition", each)
			if each > tt.most {
				t.Errorf("got %.2f scripts per acquisition, want at most %.2f", each, tt.most)
			}
			locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
			if tt.gone {
				b.WantGone("k")
			}
		})
	}
}

// Each waiter of a latch attempts separately: at the start, when it is subscribed, at a message, and after a second.
func TestCountDownLatch_CommandsOfAHundredWaiters(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		l := locks.CountDownLatch("k")
		_, err := l.TrySetCount(t.Context(), 1)
		locktest.Must(t, err)
		locktest.Must(t, locks.Ready(t.Context()))
		const n = 100
		before, errs := sent.Hits(), make(chan error, n)
		for range n {
			go func() { errs <- l.Await(t.Context()) }()
		}
		locktest.Pass(10 * time.Second)
		if got := sent.Hits() - before; got > 15*n { // two or three at the start, then one every 0.75 to 1 s
			t.Errorf("%d scripts of %d callers that wait for ten seconds", got, n)
		}
		before = sent.Hits()
		locktest.Must(t, l.CountDown(t.Context()))
		for range n {
			locktest.Must(t, <-errs)
		}
		if got := sent.Hits() - before; got > n+1 {
			t.Errorf("%d scripts for %d to go on", got, n)
		}
	})
}

// One command renews a hundred readers or permits, and no holder has a separate goroutine.
func TestKinds_ThousandsOfHolders(t *testing.T) {
	t.Parallel()
	const n, atOnce = 2_000, 50
	for name, lock := range map[string]func(c *core.Client, i int) core.Lock{
		"readers":             func(c *core.Client, i int) core.Lock { return c.ReadLock(strconv.Itoa(i)) },
		"readers of one lock": func(c *core.Client, _ int) core.Lock { return c.ReadLock("k") },
		"permits":             func(c *core.Client, i int) core.Lock { return c.Semaphore(strconv.Itoa(i/100), 100).Lock },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			goroutines := bubbleGoroutines(t)
			holds, errs := make([]*core.Hold, n), make([]error, n)
			locktest.Concurrently(atOnce, func(first int) {
				for i := first; i < n; i += atOnce {
					_, holds[i], errs[i] = lock(locks, i).Acquire(t.Context())
				}
			})
			locktest.Must(t, errors.Join(errs...))
			locktest.Pass(10 * time.Second) // the first renewals load the script
			sent := proxy.Watch(locktest.Scripts)
			locktest.Pass(10 * time.Second)
			if got := sent.Hits(); got < n/100 || got > n/100+10 {
				t.Errorf("one period: got %d scripts, want a script per hundred", got)
			}
			if grown := bubbleGoroutines(t) - goroutines; grown > n/10 { // connections have goroutines
				t.Errorf("%d more goroutines than before", grown)
			}
			locktest.Pass(15 * time.Second)
			locktest.WantSame(t, "held", locks.Stats().Holds, n)
			for _, hold := range []*core.Hold{holds[0], holds[n/2], holds[n-1]} {
				locktest.MustRelease(t, hold)
			}
		})
	}
}

// bubbleGoroutines counts the goroutines of the caller's bubble. Other tests may have thousands at the same time.
func bubbleGoroutines(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	header, _, _ := bytes.Cut(stacks, []byte("\n")) // the stack of the caller comes first
	_, own, ok := bytes.Cut(header, []byte("synctest bubble "))
	if !ok {
		t.Fatalf("not in a bubble: %s", header)
	}
	return bytes.Count(stacks, append([]byte("synctest bubble "), own...))
}
