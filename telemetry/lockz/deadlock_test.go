package lockz_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

const deadlockText = "deadlock: callers wait for each other's locks"

// Two callers that take two locks in opposite orders are in a deadlock. It is reported once, after two
// seconds, even if no browser shows the page. The page marks both callers until the deadlock ends. The record
// contains the rules of the locks that each caller holds.
func TestDeadlock_TwoCallers(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		a, z := b.locks.Lock("a"), b.locks.Lock("z")
		pay, h1 := b.take(b.t.Context(), a, core.Label("pay"))
		ship, h2 := b.take(b.t.Context(), z, core.Label("ship"))
		first := b.wait(pay, z, core.Label("pay"), core.WaitTime(10*time.Second))
		time.Sleep(time.Second) // virtual time
		second := b.wait(ship, a, core.Label("ship"), core.WaitTime(20*time.Second))
		time.Sleep(2*time.Second - 1) // virtual time
		if n := b.countDeadlocks(); n != 0 {
			t.Errorf("counted %d before the ring had existed for two seconds", n)
		}
		persist()
		persist() // a deadlock is reported once

		logged := b.logs.records(t, deadlockText)
		if n := b.countDeadlocks(); n != 1 || len(logged) != 1 {
			t.Fatalf("counted %d, logged %v, want one of each", n, logged)
		}
		for caller, rule := range map[string]string{"caller_1": "ship", "caller_2": "pay"} {
			group, _ := logged[0][caller].(map[string]any)
			if held, _ := group["holds_rules"].([]any); len(held) != 1 || held[0] != rule {
				t.Errorf("%s: logged %v, want a held lock of %s", caller, group, rule)
			}
		}
		s := b.Snapshot()
		if len(s.Deadlocks) != 1 || len(s.Deadlocks[0].Callers) != 2 || !s.Deadlocks[0].Lasts {
			t.Fatalf("deadlocks: %+v, want one of two callers", s.Deadlocks)
		}
		c := s.Deadlocks[0].Callers
		if c[0].WaitsFor.Rule != "ship" || c[0].Holder != h1.Field() || c[1].WaitsFor.Rule != "pay" || c[1].Holder != h2.Field() {
			t.Errorf("callers: %+v, want ship, which waits for the hold of pay, and pay, which waits for the hold of ship", c)
		}
		for _, w := range s.Waiters {
			if w.Deadlock != 1 {
				t.Errorf("waiter %s is not marked: %+v", w.Rule, w)
			}
		}

		b.wantRefused(first)
		if s := b.Snapshot(); len(s.Deadlocks) != 0 || len(s.PastDeadlocks) != 1 || s.Waiters[0].Deadlock != 0 {
			t.Errorf("after the wait time of one: %+v, %+v, waiters %+v", s.Deadlocks, s.PastDeadlocks, s.Waiters)
		}
		b.free(h1)
		b.wantGranted(second)
		b.free(h2)
		if n := b.countDeadlocks(); n != 1 {
			t.Errorf("counted %d in the end, want 1", n)
		}
	})
}

// The counter begins at zero also if the program sets its meter provider after it has created the page. The test sets the
// global provider, so it is not parallel.
func TestDeadlock_MeterProviderSetLate(t *testing.T) { //nolint:paralleltest // see above
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	if _, err := lockz.New(); err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, meters: sdkmetric.NewManualReader()}
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.meters)))
	if n := b.countDeadlocks(); n != 0 {
		t.Errorf("counted %d, want 0", n)
	}
}

// A ring of three is found. Each caller waits for the next one.
func TestDeadlock_ThreeCallers(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		names := []string{"a", "b", "c"}
		var holds []*core.Hold
		var contexts []context.Context
		for _, name := range names {
			ctx, hold := b.take(b.t.Context(), b.locks.Lock(name), core.Label("has-"+name))
			holds, contexts = append(holds, hold), append(contexts, ctx)
		}
		var ends []func() error
		for i := range names {
			ends = append(ends, b.wait(contexts[i], b.locks.Lock(names[(i+1)%3]), core.Label("has-"+names[i]), core.WaitTime(10*time.Second)))
		}
		persist()
		s := b.Snapshot()
		if len(s.Deadlocks) != 1 || len(s.Deadlocks[0].Callers) != 3 {
			t.Fatalf("deadlocks: %+v, want one of three callers", s.Deadlocks)
		}
		for i, rule := range []string{"has-c", "has-a", "has-b"} {
			if got := s.Deadlocks[0].Callers[i].WaitsFor.Rule; got != rule {
				t.Errorf("caller %d: got %s, want %s", i+1, got, rule)
			}
		}
		b.wantRefused(ends...)
		b.free(holds...)
	})
}

// A caller that uses two clients can wait for itself.
func TestDeadlock_OneCallerWithTwoClients(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"))
		done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second))
		persist()
		if s := b.Snapshot(); len(s.Deadlocks) != 1 || len(s.Deadlocks[0].Callers) != 1 {
			t.Errorf("deadlocks: %+v, want one of one caller", s.Deadlocks)
		}
		b.wantRefused(done)
		b.free(hold)
	})
}

// A ring through a MultiLock is found.
func TestDeadlock_MultiLock(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		pay, h1 := b.take(b.t.Context(), b.locks.MultiLock("a", "b"))
		ship, h2 := b.take(b.t.Context(), b.locks.Lock("z"))
		first := b.wait(pay, b.locks.Lock("z"), core.WaitTime(20*time.Second))
		second := b.wait(ship, b.locks.Lock("b"), core.WaitTime(10*time.Second))
		persist()
		if s := b.Snapshot(); len(s.Deadlocks) != 1 {
			t.Errorf("deadlocks: %+v, want one", s.Deadlocks)
		}
		b.wantRefused(second)
		b.free(h2)
		b.wantGranted(first)
		b.free(h1)
	})
}

// A chain that ends is not a deadlock. It may end at a holder that does not wait, at a holder for which only
// a goroutine with a detached context waits, or at readers, because they do not wait for each other.
func TestDeadlock_ChainThatEnds(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		pay, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
		_, h2 := b.take(b.t.Context(), b.locks.Lock("b"))
		chain := b.wait(pay, b.locks.Lock("b"))
		detached := b.wait(core.Detach(pay), b.locks.Lock("a"))

		reader, r1 := b.take(b.t.Context(), b.locks.ReadLock("r"))
		other, r2 := b.take(b.t.Context(), b.locks.Lock("c"))
		waits := b.wait(reader, b.locks.Lock("c"))
		_, r3, err := b.locks.ReadLock("r").Acquire(other, core.WaitTime(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		persist()
		if s := b.Snapshot(); len(s.Deadlocks)+len(s.PastDeadlocks) != 0 || b.countDeadlocks() != 0 {
			t.Errorf("found %+v", s.Deadlocks)
		}
		b.free(r3, r2)
		b.wantGranted(waits)
		b.free(r1, h2)
		b.wantGranted(chain)
		b.free(h1)
		b.wantGranted(detached)
	})
}

// The page calls a caller without a rule "a caller", not "none". The rule of the lock that the caller holds
// shows where the caller comes from.
func TestDeadlock_CallerWithoutARule(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
		done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second))
		persist()
		check := func(want string) {
			if body := b.text("/", ""); !strings.Contains(body, want) || strings.Contains(body, "none holds") || strings.Contains(body, "none held") {
				b.t.Errorf("the page does not say %q:\n%s", want, body)
			}
		}
		check("a caller holds " + core.KeyHash("shop:a") + " (pay) and waits for " + core.KeyHash("shop:a"))
		_ = done()
		check("a caller held " + core.KeyHash("shop:a") + " (pay) and waited for " + core.KeyHash("shop:a"))
		b.free(hold)
	})
}

// All deadlocks are counted, but the number of records is limited.
func TestDeadlock_LogLimit(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		const rings = 25
		for i := range rings {
			x, y := b.locks.Lock("x"+string(rune('a'+i))), b.locks.Lock("y"+string(rune('a'+i)))
			one, h1 := b.take(b.t.Context(), x)
			two, h2 := b.take(b.t.Context(), y)
			first, second := b.wait(one, y, core.WaitTime(time.Minute)), b.wait(two, x, core.WaitTime(time.Minute))
			b.t.Cleanup(func() {
				b.wantRefused(first, second)
				b.free(h1, h2)
			})
		}
		persist()
		if n, logged := b.countDeadlocks(), len(b.logs.records(t, deadlockText)); n != rings || logged != 10 {
			t.Errorf("counted %d and logged %d, want %d and 10", n, logged, rings)
		}
		synctest.Wait()
	})
}

// Operators usually look after a deadlock has ended. The page still shows which locks each caller held and
// waited for, and its trace.
func TestDeadlock_PastDeadlockOnThePage(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab, 1}, SpanID: trace.SpanID{1}})
		ctx := trace.ContextWithSpanContext(b.t.Context(), span)
		ctx, hold := b.take(ctx, b.locks.Lock("a"), core.Label("transfer"))
		done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second), core.Label("transfer-to"))
		_ = done()
		b.free(hold)
		_, over, _ := strings.Cut(b.get("/").Body.String(), "1 that have ended")
		over, _, _ = strings.Cut(over, "</details>")
		for _, part := range []string{"transfer-to", "(<bdi>transfer</bdi>)", core.KeyHash("shop:a"), span.TraceID().String()} {
			if !strings.Contains(over, part) {
				t.Errorf("the past deadlock has no %s: %s", part, over)
			}
		}
	})
}

// The record contains rules and hashes of keys. It contains keys only with WithRawKeys.
func TestDeadlock_LogHidesKeys(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts  []lockz.Option
		field string
		want  string
	}{
		"hashed": {nil, "waits_for_hash", core.KeyHash("shop:a")},
		"raw":    {[]lockz.Option{lockz.WithRawKeys()}, "waits_for", "shop:a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *fixture) {
				ctx, hold := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("pay"))
				done := b.wait(ctx, b.client().Lock("a"), core.WaitTime(10*time.Second), core.Label("again"))
				persist()
				logged := b.logs.records(b.t, deadlockText)
				if len(logged) != 1 {
					b.t.Fatalf("logged %v", logged)
				}
				caller := logged[0]["caller_1"].(map[string]any)
				if caller[tt.field] != tt.want || caller["rule"] != "again" || caller["blocked_by"] != hold.Field() {
					b.t.Errorf("got %v, want %s %s", caller, tt.field, tt.want)
				}
				_ = done()
				b.free(hold)
			}, tt.opts...)
		})
	}
}

// A reader that queues behind a writer also waits for the readers that hold the lock. It can be in a deadlock
// with one of them that does not include the writer.
func TestDeadlock_ReaderBehindAWriter(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		first, h1 := b.take(b.t.Context(), b.locks.ReadLock("stock"), core.Label("pay"))
		second, h2 := b.take(b.t.Context(), b.locks.Lock("a"), core.Label("ship"))
		writes := b.wait(b.t.Context(), b.locks.WriteLock("stock"), core.Label("count"))
		time.Sleep(time.Second) // virtual time
		reads := b.wait(second, b.locks.ReadLock("stock"), core.Label("ship"), core.WaitTime(9*time.Second))
		persist()
		if n := b.countDeadlocks(); n != 0 {
			t.Errorf("counted %d before the first reader waits", n)
		}
		wants := b.wait(first, b.locks.Lock("a"), core.Label("pay"), core.WaitTime(10*time.Second))
		persist()
		s := b.Snapshot()
		if len(s.Deadlocks) != 1 || len(s.Deadlocks[0].Callers) != 2 || s.Deadlocks[0].Callers[1].Holder != h1.Field() {
			t.Errorf("deadlocks: %+v, want one of the two callers that hold a lock", s.Deadlocks)
		}
		b.wantRefused(reads)
		b.free(h2)
		b.wantGranted(wants)
		b.free(h1)
		b.wantGranted(writes)
	})
}

// A ring that ends within two seconds is not reported, for example because one of its callers does not wait
// or has a short wait time.
func TestDeadlock_ShortRing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"try-lock": 0, "short wait": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *fixture) {
				pay, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
				ship, h2 := b.take(b.t.Context(), b.locks.Lock("z"))
				waits := b.wait(pay, b.locks.Lock("z"), core.WaitTime(time.Hour))
				for range 10 {
					if _, _, err := b.locks.Lock("a").Acquire(ship, core.WaitTime(wait)); !errors.Is(err, core.ErrNotAcquired) {
						b.t.Fatal(err)
					}
				}
				persist()
				if s := b.Snapshot(); b.countDeadlocks() != 0 || len(b.logs.records(b.t, deadlockText)) != 0 || len(s.Deadlocks)+len(s.PastDeadlocks) != 0 {
					b.t.Errorf("counted %d, found %+v and %+v, want none", b.countDeadlocks(), s.Deadlocks, s.PastDeadlocks)
				}
				b.free(h2)
				b.wantGranted(waits)
				b.free(h1)
			})
		})
	}
}

// Equal keys in different Redis servers or databases are different locks, so callers that wait for them form no ring.
func TestDeadlock_OtherServerOrDatabase(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(*fixture) *redis.Client{
		"server":   func(b *fixture) *redis.Client { return redistest.New(b.t).Client() },
		"database": func(b *fixture) *redis.Client { return b.server.Client(func(o *redis.Options) { o.DB = 1 }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *fixture) {
				other := b.clientOf(server(b))
				here, h1 := b.take(b.t.Context(), b.locks.Lock("a"))
				there, h2 := b.take(b.t.Context(), other.Lock("b"))
				_, h3 := b.take(b.t.Context(), b.locks.Lock("b"))
				_, h4 := b.take(b.t.Context(), other.Lock("a"))
				first := b.wait(here, b.locks.Lock("b"))
				second := b.wait(there, other.Lock("a"))
				persist()
				s := b.Snapshot()
				if b.countDeadlocks() != 0 || len(s.Deadlocks) != 0 {
					b.t.Errorf("counted %d, found %+v, want none", b.countDeadlocks(), s.Deadlocks)
				}
				for _, w := range s.Waiters {
					if w.BlockedBy.Holder != h3.Field() && w.BlockedBy.Holder != h4.Field() {
						b.t.Errorf("blocked by %+v, want the holder in the same Redis", w.BlockedBy)
					}
				}
				for _, h := range s.Holds {
					if want := map[string]int{h3.Field(): 1, h4.Field(): 1}[h.Holder]; h.Waiters != want {
						b.t.Errorf("%d wait for the hold of %s, want %d", h.Waiters, h.Holder, want)
					}
				}
				b.free(h3, h4)
				b.wantGranted(first, second)
				b.free(h1, h2)
			})
		})
	}
}

// A ring is found through every key of a MultiLock, even if another holder blocked the waiter first.
func TestDeadlock_SecondKeyOfAMultiLock(t *testing.T) {
	t.Parallel()
	for name, ring := range map[string]func(b *fixture) (first, second func() error, h1, h2 *core.Hold){
		"held together": func(b *fixture) (first, second func() error, h1, h2 *core.Hold) {
			_, before := b.take(b.t.Context(), b.locks.Lock("b"))
			ship, h2 := b.take(b.t.Context(), b.locks.Lock("z"))
			var pay context.Context
			var taken sync.WaitGroup
			taken.Go(func() { pay, h1 = b.take(b.t.Context(), b.locks.MultiLock("a", "b")) })
			synctest.Wait()
			second = b.wait(ship, b.locks.Lock("b"), core.WaitTime(time.Hour)) // first blocked by the other holder
			b.free(before)
			taken.Wait()
			return b.wait(pay, b.locks.Lock("z"), core.WaitTime(time.Minute)), second, h1, h2
		},
		"wanted together": func(b *fixture) (first, second func() error, h1, h2 *core.Hold) {
			_, before := b.take(b.t.Context(), b.locks.Lock("a"))
			ship, h2 := b.take(b.t.Context(), b.locks.Lock("b"))
			pay, h1 := b.take(b.t.Context(), b.locks.Lock("z"))
			first = b.wait(pay, b.locks.MultiLock("a", "b"), core.WaitTime(time.Minute)) // first blocked by the other holder
			b.free(before)
			return first, b.wait(ship, b.locks.Lock("z"), core.WaitTime(time.Hour)), h1, h2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *fixture) {
				first, second, h1, h2 := ring(b)
				persist()
				if s := b.Snapshot(); len(s.Deadlocks) != 1 || len(s.Deadlocks[0].Callers) != 2 {
					b.t.Errorf("deadlocks: %+v, want one of two callers", s.Deadlocks)
				}
				b.wantRefused(first)
				b.free(h1)
				b.wantGranted(second)
				b.free(h2)
			})
		})
	}
}

// A caller that waits for two readers may be in two rings. After the first ring has ended, the second one is
// still found.
func TestDeadlock_SecondRing(t *testing.T) {
	t.Parallel()
	run(t, func(b *fixture) {
		one, r1 := b.take(b.t.Context(), b.locks.ReadLock("stock"))
		two, r2 := b.take(b.t.Context(), b.locks.ReadLock("stock"))
		holder, h := b.take(b.t.Context(), b.locks.Lock("z"))
		gives := b.wait(one, b.locks.Lock("z"), core.WaitTime(time.Second))
		stays := b.wait(two, b.locks.Lock("z"), core.WaitTime(time.Hour))
		writes := b.wait(holder, b.locks.WriteLock("stock"), core.WaitTime(time.Minute))
		b.wantRefused(gives)
		b.free(r1)
		persist()
		persist()
		if s := b.Snapshot(); len(s.Deadlocks) != 1 || s.Deadlocks[0].Callers[0].Holder != r2.Field() || b.countDeadlocks() != 1 {
			t.Errorf("counted %d, deadlocks: %+v, want the deadlock with the second reader", b.countDeadlocks(), s.Deadlocks)
		}
		b.wantRefused(writes)
		b.free(h)
		b.wantGranted(stays)
		b.free(r2)
	})
}

// persist sleeps until a ring counts as a deadlock.
func persist() {
	time.Sleep(3 * time.Second) // virtual time
	synctest.Wait()
}
