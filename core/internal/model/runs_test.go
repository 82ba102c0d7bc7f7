package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/history"
	"github.com/interlock-go/interlock/core/redistest"
)

// In a recorded run two processes want one key, for a few turns each.
const (
	runKey      = "k"
	runCallers  = 2 // goroutines in each process
	runTurns    = 2 // of each caller, at most
	runWatchdog = 300 * time.Millisecond
	runLatency  = 300 * time.Microsecond
)

var scripts = faultproxy.Command("evalsha", "eval")

// plan selects the events of a run besides plain turns.
type plan struct {
	reentries bool
	fixed     bool // leases that are not renewed and expire under their holders
	tokens    bool
	force     bool
	lost      bool // an answer
}

// record runs two processes in a bubble and returns their events.
func record(t *testing.T, seed uint64, p plan) (events []history.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{plan: p, epoch: time.Now()}
		server := redistest.New(t)
		var all sync.WaitGroup
		for process := 1; process <= 2; process++ {
			random := rand.New(rand.NewPCG(seed, uint64(process)))
			proxy, rdb := faultproxy.Around(t, server.Client(), func(o *redis.Options) { o.MaxRetries = -1 })
			if p.lost && process == 1 {
				proxy.DropReply(faultproxy.Nth(1+random.IntN(8), scripts))
			}
			proxy.DelayRequest(scripts, runLatency)
			locks, err := core.New(rdb, core.WithWatchdog(runWatchdog))
			if err != nil {
				t.Fatal(err)
			}
			var own sync.WaitGroup
			for goroutine := 1; goroutine <= runCallers; goroutine++ {
				c := &caller{recorder: r, Rand: rand.New(rand.NewPCG(random.Uint64(), 0)), process: process, goroutine: goroutine, locks: locks}
				own.Go(func() { c.run(t.Context()) })
			}
			if p.force && process == 2 {
				c := &caller{recorder: r, Rand: random, process: process, locks: locks}
				own.Go(func() { c.forceOnce(t.Context()) })
			}
			all.Go(func() {
				own.Wait()
				if err := locks.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		events = r.events
	})
	return events
}

// recorder records events. No two events have the same time, so that their order is known.
type recorder struct {
	plan

	epoch time.Time
	ids   atomic.Int64

	mu     sync.Mutex
	last   time.Duration
	events []history.Event
}

func (r *recorder) now() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(time.Since(r.epoch), r.last+1)
	return r.last
}

func (r *recorder) note(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// caller is a goroutine of a process.
type caller struct {
	*recorder
	*rand.Rand

	process, goroutine int
	locks              *core.Client
}

func (c *caller) upTo(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d) + 1)) }

func (c *caller) pause(d time.Duration) { time.Sleep(c.upTo(d)) } // virtual time

func (c *caller) lock() core.Lock {
	if c.tokens {
		return c.locks.FencedLock(runKey)
	}
	return c.locks.Lock(runKey)
}

func (c *caller) run(ctx context.Context) {
	for range 1 + c.IntN(runTurns) {
		c.pause(5 * time.Millisecond)
		c.turn(ctx)
	}
}

// turn acquires the lock once, holds it for a while and releases it.
func (c *caller) turn(ctx context.Context) {
	var opts []core.AcquireOption
	ask, lease := history.Ask{Renewed: true}, runWatchdog
	if c.fixed && c.IntN(2) == 0 {
		ask.Renewed, lease = false, 10*time.Millisecond
		opts = append(opts, core.LeaseTime(lease))
	}
	if c.IntN(4) == 0 {
		opts = append(opts, core.WaitTime(c.upTo(4*time.Millisecond)))
	}
	ctx, hold, e := c.acquire(ctx, fmt.Sprintf("p%d.g%d.%d", c.process, c.goroutine, c.ids.Add(1)), ask, opts...)
	if hold == nil {
		return
	}
	work := c.upTo(3 * time.Millisecond)
	if c.fixed && c.IntN(3) == 0 {
		work = 2 * lease
	}
	time.Sleep(work) // the work, in virtual time
	c.look(ctx, &e)
	if c.reentries && c.IntN(2) == 0 {
		if _, inner, again := c.acquire(ctx, e.Owner, history.Ask{Renewed: true, Reentry: true}); inner != nil {
			c.pause(time.Millisecond)
			c.release(ctx, inner, &again)
		}
		c.look(ctx, &e)
	}
	c.release(ctx, hold, &e)
}

// acquire records a failed acquisition. release records a successful one.
func (c *caller) acquire(ctx context.Context, owner string, ask history.Ask, opts ...core.AcquireOption) (context.Context, *core.Hold, history.Event) {
	e := history.Event{
		Kind: history.Acquire, Process: c.process, Goroutine: c.goroutine, Keys: []string{runKey}, Owner: owner, Ask: &ask, Begin: c.now(),
	}
	ctx, hold, err := c.lock().Acquire(ctx, opts...)
	e.End, e.Outcome = c.now(), outcome(err)
	if err != nil {
		c.note(e)
		return ctx, nil, e
	}
	e.Hold = &history.Hold{Field: hold.Field(), Token: hold.Token(), Alive: e.End}
	return ctx, hold, e
}

// look records whether a hold is alive.
func (c *caller) look(ctx context.Context, e *history.Event) {
	now := c.now()
	switch {
	case ctx.Err() == nil:
		e.Hold.Alive = now
	case e.Hold.Ended == 0:
		e.Hold.Ended, e.Hold.Cause = now, history.Lost
	}
}

func (c *caller) release(ctx context.Context, hold *core.Hold, e *history.Event) {
	r := &e.Hold.Release
	r.Begin = c.now()
	err := hold.Release(context.WithoutCancel(ctx))
	r.End, r.Outcome = c.now(), outcome(err)
	c.note(*e)
}

// forceOnce frees the lock at some time, whichever process holds it.
func (c *caller) forceOnce(ctx context.Context) {
	c.pause(15 * time.Millisecond)
	e := history.Event{Kind: history.Force, Process: c.process, Keys: []string{runKey}, Begin: c.now()}
	freed, err := c.lock().ForceRelease(ctx)
	e.End, e.Outcome = c.now(), outcome(err)
	if err == nil && !freed {
		e.Outcome = history.Free
	}
	c.note(e)
}

func outcome(err error) history.Outcome {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, core.ErrNotHeld): // after the losses, because a loss also matches ErrNotHeld
		return history.Lost
	default:
		return history.Other
	}
}
