package core_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// An acquire of any kind that ends in the middle, by a deadline, a cancel or its wait time, before
// or after Redis has executed it, returns at once and leaves nothing, now and when it lands.
func TestPitfalls_AcquireEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Millisecond
	for when, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		for end, want := range leavings() {
			parallelSorts(t, when+"/"+end, func(t *testing.T, w *world) {
				rules := w.inject(f, w.op("acquire"))
				ctx, opts := leaving(t, end, after)
				opts = append(opts, core.LeaseTime(time.Minute))
				o := <-acquiring(ctx, w.mine, opts...)
				if wantErr(t, o.err, want); o.took > after+5*time.Millisecond || o.hold != nil {
					t.Errorf("it took %s, with the hold %v", o.took, o.hold)
				}
				pass(2 * time.Second)
				w.wantNothing("while it is held")
				let(rules)
				pass(time.Second)
				w.wantNothing("after it has landed")
				w.wantFree()
			})
		}
	}
}

// An abandoned acquire of any kind lands late, in every order with a newer acquisition by another client or by the
// same: it takes nothing from that one, and does not rise from the dead.
func TestPitfalls_AbandonedAcquireLandsLate(t *testing.T) {
	t.Parallel()
	soon := func(w *world, newer core.Lock) {
		start := time.Now()
		_, hold := acquired(w.t, w.t.Context(), newer)
		released(w.t, hold)
		if took := time.Since(start); took > time.Second {
			w.t.Errorf("the next one took %s", took)
		}
	}
	for order, run := range map[string]func(w *world, newer core.Lock, land func()){
		"before the newer": func(w *world, newer core.Lock, land func()) { land(); soon(w, newer) },
		"under the newer": func(w *world, newer core.Lock, land func()) {
			ctx, hold := acquired(w.t, w.t.Context(), newer)
			land()
			pass(20 * time.Second)
			wantAlive(w.t, ctx)
			released(w.t, hold)
		},
		"after the newer":   func(w *world, newer core.Lock, land func()) { soon(w, newer); land() },
		"between two newer": func(w *world, newer core.Lock, land func()) { soon(w, newer); land(); soon(w, newer) },
		"alone":             func(_ *world, _ core.Lock, land func()) { land() },
	} {
		for _, same := range []bool{false, true} {
			parallelSorts(t, order+map[bool]string{true: "/of the same client", false: "/of another client"}[same], func(t *testing.T, w *world) {
				rules := w.inject(holdRequest, w.op("acquire"))
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_, _, err := w.mine.Acquire(ctx, core.LeaseTime(time.Minute))
				wantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
				newer := w.other
				if same {
					newer = w.rival(w.clients)
				}
				run(w, newer, func() { let(rules) })
				pass(time.Second)
				w.wantNothing("after it has landed")
				w.wantFree()
			})
		}
	}
}

// A reply that comes when the lease is over is no success, of any kind.
func TestPitfalls_ReplyAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		parallelSorts(t, wait.String(), func(t *testing.T, w *world) {
			rules := w.inject(holdReply, w.op("acquire"))
			const lease = 400 * time.Millisecond
			got := acquiring(t.Context(), w.mine, core.LeaseTime(lease), core.WaitTime(wait))
			pass(2 * lease)
			let(rules)
			o := <-got
			if errors.Is(o.err, core.ErrUnavailable) && w.sort.servers > 1 {
				pass(time.Second)
				w.wantFree()
				return // which waits for no server that long
			}
			must(t, o.err)
			wantAlive(t, o.ctx)
			if left := o.hold.Remaining(); left <= 0 || w.there() < w.sort.servers {
				t.Errorf("%s remain, and it is on %d servers", left, w.there())
			}
			w.wantTaken()
			released(t, o.hold)
			pass(time.Second)
			w.wantFree()
		}, patient)
	}
}

// Leases and waits that make no sense are errors without a command, of any kind.
func TestPitfalls_BadTimes(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		sent := w.inject(func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.Watch(m) }, func() faultproxy.Match { return scripts })
		for _, opt := range []core.AcquireOption{
			core.LeaseTime(-1), core.LeaseTime(time.Microsecond), core.LeaseTime(math.MaxInt64),
			core.WaitTime(-1), core.WaitTime(time.Microsecond), core.WaitTime(math.MaxInt64),
		} {
			_, _, err := w.mine.Acquire(t.Context(), opt)
			wantOnly(t, err, core.ErrInvalid, core.ErrNotAcquired, core.ErrUnavailable)
		}
		for i, s := range sent {
			if s.Hits() > 0 {
				t.Errorf("%d scripts on server %d", s.Hits(), i)
			}
		}
		w.wantNothing("after refusals")
	})
}

// What Redis refuses, or cannot do with the key, is unavailable: never taken, never acquired, of any
// kind. A script that is not known any more is nothing at all.
func TestPitfalls_Refusals(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		for _, says := range []string{"OOM command not allowed", "READONLY You can't write", "NOPERM no permissions", "LOADING Redis is loading", "BUSY a script runs", "MASTERDOWN Link with MASTER is down"} {
			rules := w.inject(func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.AnswerError(m, says) }, func() faultproxy.Match { return scripts })
			_, _, err := w.mine.Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
			t.Log(err)
			wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
			let(rules)
		}
		for _, s := range w.servers {
			must(t, s.LPush(t.Context(), pool, "x").Err())
		}
		_, _, err := w.mine.Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
		wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		w.flush()
		for _, s := range w.servers {
			must(t, s.ScriptFlush(t.Context()).Err())
		}
		_, hold := acquired(t, t.Context(), w.mine, core.WaitTime(0))
		released(t, hold)
		pass(time.Second)
		w.wantFree()
	})
}

// Replies are lost at every step of a life: no operation fails, others are kept out as long as
// it is held and no longer, and nothing is left.
func TestPitfalls_LostReplies(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"acquire", "sethold", "refresh", "renew", "release"} {
		for how, f := range map[string]fault{"reply": dropReply, "request": dropRequest} {
			parallelSorts(t, op+"/"+how, func(t *testing.T, w *world) {
				rules := w.inject(f, w.op(op))
				ctx, hold := acquired(t, t.Context(), w.mine)
				if w.enters {
					_, inner := acquired(t, ctx, w.mine)
					released(t, inner)
				}
				pass(7 * time.Second) // two renewals
				wantAlive(t, ctx)
				w.wantTaken()
				must(t, hold.Refresh(t.Context(), 10*time.Second))
				must(t, hold.Refresh(t.Context(), 5*time.Second))
				w.wantTaken()
				released(t, hold)
				for i, r := range rules {
					if r.Hits() != 1 && (w.enters || op != "sethold") {
						t.Errorf("%d were lost on server %d", r.Hits(), i)
					}
				}
				pass(time.Second)
				w.wantFree()
			}, nineSeconds)
		}
	}
}
