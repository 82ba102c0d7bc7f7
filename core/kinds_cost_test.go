package core_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// costed is a kind whose commands are counted.
type costed struct {
	constructor string
	of          func(*core.Client) core.Lock
	inTheWay    func(*core.Client) core.Lock
}

// ofItself is a kind that is in its own way.
func ofItself(constructor string, of func(*core.Client) core.Lock) costed {
	return costed{constructor, of, of}
}

func costs() []costed {
	write := func(c *core.Client) core.Lock { return c.WriteLock("k") }
	return []costed{
		ofItself("Lock", func(c *core.Client) core.Lock { return c.Lock("k") }),
		ofItself("MultiLock", func(c *core.Client) core.Lock { return c.MultiLock("k", "l", "m") }),
		ofItself("FencedLock", func(c *core.Client) core.Lock { return c.FencedLock("k") }),
		ofItself("FairLock", func(c *core.Client) core.Lock { return c.FairLock("k") }),
		{"ReadLock", func(c *core.Client) core.Lock { return c.ReadLock("k") }, write},
		ofItself("WriteLock", write),
		ofItself("Semaphore", func(c *core.Client) core.Lock { return c.Semaphore("k", 1).Lock }),
	}
}

// TestKinds_Commands compares how many commands each kind takes with the table in examples/choosing.
func TestKinds_Commands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../examples/choosing/README.md")
	locktest.Must(t, err)
	for _, kind := range costs() {
		locktest.ParallelBubble(t, kind.constructor, func(t *testing.T, b *locktest.Redis) {
			free, waited := commands(t, b, kind.of, kind.inTheWay)
			row := rowOf(string(page), "`Client."+kind.constructor+"`")
			want := fmt.Sprintf("| %d, %d |", free, waited)
			if kind.constructor == "MultiLock" { // each of its keys has a message of its own: they come in any order
				for round := 0; waited > 9 && round < 20; round++ {
					// Nobody of the last round listens any more then. Beside listeners a client listens by
					// itself when it has had the lock again, and needs one look less: 5 commands.
					locktest.Pass(10 * time.Second)
					_, waited = commands(t, b, kind.of, kind.inTheWay)
				}
				if waited >= 6 && waited <= 9 {
					want = fmt.Sprintf("| %d for three keys, mostly 6 to 9 |", free)
				}
			}
			if !strings.Contains(row, want) {
				t.Errorf("%d commands for a free lock and %d for one that was waited for; the table says:\n%s", free, waited, row)
			}
		})
	}
}

// On a real server it is the same. Who is slow there looks more often, and never less: so one
// round of several has to be as the table says.
func TestKinds_CommandsOnAServer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../examples/choosing/README.md")
	locktest.Must(t, err)
	for _, kind := range costs() {
		row := rowOf(string(page), "`Client."+kind.constructor+"`")
		if kind.constructor == "MultiLock" || kind.constructor == "Semaphore" {
			continue // whose messages and answers may cross
		} else if !strings.Contains(row, "| 2, 4 |") {
			t.Errorf("the table says of %s: %s", kind.constructor, row)
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
				_, theirs := locktest.MustAcquire(t, t.Context(), kind.inTheWay(others))
				waiting := locktest.GoAcquire(context.Background(), kind.of(locks))
				locktest.Eventually(t, "a look before it hears messages, and one after", func() bool { return sent.Hits()-before >= 2 })
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

// rowOf is the first line of a table with a cell.
func rowOf(text, cell string) string {
	_, behind, _ := strings.Cut(text, "| "+cell+" |")
	row, _, _ := strings.Cut(behind, "\n")
	return row
}

// commands counts the scripts of a client for a lock that is free, and for one that another
// client has and then releases.
func commands(t *testing.T, b *locktest.Redis, of, inTheWay func(*core.Client) core.Lock) (free, waited int) {
	t.Helper()
	proxy, rdb := faultproxy.Around(t, b.Client)
	locks := locktest.NewClient(t, rdb)
	_, hold := locktest.MustAcquire(t, t.Context(), of(locks)) // the server knows the scripts from here on
	locktest.MustRelease(t, hold)
	sent := proxy.Watch(locktest.Scripts)

	_, hold = locktest.MustAcquire(t, t.Context(), of(locks))
	locktest.MustRelease(t, hold)
	free = sent.Hits()

	_, theirs := locktest.MustAcquire(t, t.Context(), inTheWay(b.Locks()))
	_, _, err := of(locks).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.Pass(time.Second) // for what there may be to clear up
	locktest.WantSame(t, "commands for an acquisition that does not wait", sent.Hits()-free, 1)

	before := sent.Hits()
	waiting := locktest.GoAcquire(context.Background(), of(locks))
	time.Sleep(100 * time.Millisecond) // in the time of the bubble
	locktest.MustRelease(t, theirs)
	locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
	return free, sent.Hits() - before
}
