package core_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// recorder is an observer of everything.
type recorder struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	name string
	ctx  context.Context
	data any
}

func newRecorder() *recorder { return &recorder{} }

func (r *recorder) add(ctx context.Context, name string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{name, ctx, data})
}

func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, e := range r.events {
		names = append(names, e.name)
	}
	return names
}

func (r *recorder) count(name string) (n int) {
	for _, other := range r.names() {
		if other == name {
			n++
		}
	}
	return n
}

// first gives the first event of a name.
func (r *recorder) first(t *testing.T, name string) event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.events, func(e event) bool { return e.name == name })
	if i < 0 {
		t.Fatalf("no %s among the events", name)
	}
	return r.events[i]
}

// last gives the last event of a name.
func (r *recorder) last(t *testing.T, name string) event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.events) {
		if e.name == name {
			return e
		}
	}
	t.Fatalf("no %s among the events", name)
	return event{}
}

func (r *recorder) want(t *testing.T, names ...string) {
	t.Helper()
	if got := r.names(); !slices.Equal(got, names) {
		t.Errorf("events:\ngot  %q\nwant %q", got, names)
	}
}

type nesting string

func (r *recorder) observer() *core.Observer {
	return &core.Observer{
		AcquireStart: r.observeAcquireStart,
		Contention:   r.observeContention,
		AcquireEnd:   r.observeAcquireEnd,
		HoldStart:    r.observeHoldStart,
		HoldEnd:      r.observeHoldEnd,
		Renewal:      r.observeRenewal,
		Loss:         r.observeLoss,
		Leak:         r.observeLeak,
	}
}

func (r *recorder) observeAcquireStart(ctx context.Context, a core.Acquisition) context.Context {
	r.add(ctx, "acquire start", a)
	return context.WithValue(ctx, nesting("acquire"), true)
}

func (r *recorder) observeContention(ctx context.Context, c core.Contention) {
	r.add(ctx, "contention", c)
}

func (r *recorder) observeAcquireEnd(ctx context.Context, a core.AcquireResult) {
	r.add(ctx, "acquire end", a)
}

func (r *recorder) observeHoldStart(ctx context.Context, h core.HoldInfo) context.Context {
	r.add(ctx, "hold start", h)
	return context.WithValue(ctx, nesting("hold"), true)
}

func (r *recorder) observeHoldEnd(ctx context.Context, h core.HoldResult) { r.add(ctx, "hold end", h) }

func (r *recorder) observeRenewal(ctx context.Context, n core.Renewal) { r.add(ctx, "renewal", n) }

func (r *recorder) observeLoss(ctx context.Context, l core.Loss) { r.add(ctx, "loss", l) }

func (r *recorder) observeLeak(ctx context.Context, h core.HoldInfo) { r.add(ctx, "leak", h) }

func TestObservers_OrderAndNestingOfOneHold(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		type key struct{}
		caller := context.WithValue(t.Context(), key{}, "caller")
		ctx, hold := acquired(t, caller, b.locks(core.WithObserver(obs.observer())).Lock("k"), core.Label("pay-order"), core.LeaseTime(time.Minute))
		released(t, hold)
		obs.want(t, "acquire start", "acquire end", "hold start", "hold end")

		if start := obs.first(t, "acquire start"); start.ctx != caller {
			t.Error("the acquisition does not start from the caller's context")
		}
		if end := obs.first(t, "acquire end"); end.ctx.Value(nesting("acquire")) == nil || end.ctx.Value(key{}) == nil {
			t.Error("the acquisition's context does not nest")
		}
		if start := obs.first(t, "hold start"); start.ctx.Value(nesting("acquire")) != nil {
			t.Error("the hold is inside of the acquisition")
		}
		if ctx.Value(nesting("hold")) == nil || ctx.Value(key{}) == nil {
			t.Error("the hold's context is not under that of its observer")
		}
		if end := obs.first(t, "hold end"); end.ctx.Value(nesting("hold")) == nil || end.ctx.Err() != nil {
			t.Error("the end of the hold is observed with a context that is not its own, or has ended")
		}
	})
}

func TestObservers_WhatEachEventCarries(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()), core.WithPrefix("shop:"))
		b.take("shop:k", stranger, 5*time.Second)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.Label("pay"))
		pass(11 * time.Second)
		b.Del(t.Context(), "shop:k")
		pass(11 * time.Second)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		obs.want(t, "acquire start", "contention", "acquire end", "hold start", "renewal", "loss", "hold end")

		base := obs.first(t, "acquire start").data.(core.Acquisition)
		if base.Key != "shop:k" || base.Keys != 1 || base.Kind != core.KindReentrant || base.Label != "pay" || base.Start.IsZero() {
			t.Errorf("acquisition: got %+v", base)
		}
		if c := obs.first(t, "contention").data.(core.Contention); c.Acquisition != base || c.BlockedBy != stranger || c.TTL <= 0 || c.TTL > 5*time.Second {
			t.Errorf("contention: got %+v", c)
		}
		end := obs.first(t, "acquire end").data.(core.AcquireResult)
		if end.Acquisition != base || end.Outcome != core.OutcomeAcquired || end.Err != nil || !end.Contended || end.Attempts < 2 ||
			end.Waited < 5*time.Second || end.Waited > 6*time.Second || end.BlockedBy != stranger || end.Field != hold.Field() || end.HandedOff {
			t.Errorf("acquire end: got %+v", end)
		}
		info := obs.first(t, "hold start").data.(core.HoldInfo)
		if info.Acquisition != base || info.Field != hold.Field() || info.Reentrant || !info.Watchdog || info.Lease != 30*time.Second || info.Acquired.IsZero() {
			t.Errorf("hold start: got %+v", info)
		}
		if r := obs.first(t, "renewal").data.(core.Renewal); r.HoldInfo != info || r.Err != nil || r.Late != 0 {
			t.Errorf("renewal: got %+v", r)
		}
		l := obs.first(t, "loss").data.(core.Loss)
		wantErr(t, l.Cause, core.ErrLost)
		if l.HoldInfo != info {
			t.Errorf("loss: got %+v", l)
		}
		r := obs.first(t, "hold end").data.(core.HoldResult)
		wantErr(t, r.Err, core.ErrLost)
		if r.HoldInfo != info || !r.Lost || r.Left || r.HandedOff || r.Held < 20*time.Second {
			t.Errorf("hold end: got %+v", r)
		}
	})
}

func TestObservers_Outcomes(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()))
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		_, inner := acquired(t, ctx, locks.Lock("k"))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		b.Set(t.Context(), "text", "x", 0)
		for _, try := range []func() error{
			func() error { _, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0)); return err },
			func() error { _, _, err := locks.Lock("k").Acquire(cancelled); return err },
			func() error { _, _, err := locks.Lock("text").Acquire(t.Context()); return err },
		} {
			if try() == nil {
				t.Error("acquired")
			}
		}
		released(t, inner)
		released(t, hold)
		want := []core.Outcome{core.OutcomeAcquired, core.OutcomeReentered, core.OutcomeBusy, core.OutcomeCanceled, core.OutcomeBackend}
		if got := obs.outcomes(); !slices.Equal(got, want) {
			t.Errorf("outcomes: got %q, want %q", got, want)
		}
	})
}

// The timeout of a dialer matches the error of a context. The outcome is still an outage, because the caller has not
// left the acquisition.
func TestObservers_OutcomeOfADialerThatTimesOut(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"deadline": context.DeadlineExceeded, "canceled": context.Canceled} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			obs := newRecorder()
			o := *b.Options()
			o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, cause }
			rdb := redis.NewClient(&o)
			defer rdb.Close()
			locks := locksOn(t, rdb, core.WithObserver(obs.observer()))
			for range 2 {
				_, _, err := locks.Lock("k").Acquire(t.Context())
				wantErr(t, err, core.ErrUnavailable)
			}
			if got, want := obs.outcomes(), []core.Outcome{core.OutcomeBackend, core.OutcomeBackend}; !slices.Equal(got, want) {
				t.Errorf("outcomes: got %q, want %q", got, want)
			}
		})
	}
}

// What cannot be acquired by mistake is nobody's lock.
func TestObservers_MisuseIsNotBusy(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()))
		ctx, hold := acquired(t, t.Context(), locks.ReadLock("k"))
		for _, try := range []func() error{
			func() error { _, _, err := locks.WriteLock("k").Acquire(ctx); return err },
			func() error { _, _, err := locks.FencedLock("k").Acquire(ctx); return err },
			func() error { _, _, err := locks.FencedLock("k").Acquire(t.Context()); return err },
			func() error { _, _, err := locks.MultiLock("k", "other").Acquire(t.Context()); return err },
		} {
			wantErr(t, try(), core.ErrInvalid)
		}
		released(t, hold)
		want := []core.Outcome{core.OutcomeAcquired, core.OutcomeKey, core.OutcomeKey, core.OutcomeKey, core.OutcomeKey}
		if got := obs.outcomes(); !slices.Equal(got, want) {
			t.Errorf("outcomes: got %q, want %q", got, want)
		}
	})
}

func (r *recorder) outcomes() (all []core.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if end, ok := e.data.(core.AcquireResult); ok {
			all = append(all, end.Outcome)
		}
	}
	return all
}

func TestObservers_ReentryAndHandOffAreTold(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()))
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		next := make(chan *core.Hold)
		go func() {
			_, h, _ := locks.Lock("k").Acquire(t.Context())
			next <- h
		}()
		waiters(t, locks, 1)
		eventually(t, "contention", func() bool { return obs.count("contention") == 1 })
		released(t, hold)
		released(t, <-next)
		if r := obs.first(t, "hold end").data.(core.HoldResult); !r.HandedOff || r.Err != nil {
			t.Errorf("the releaser: got %+v, want handed off", r)
		}
		obs.mu.Lock()
		defer obs.mu.Unlock()
		for _, e := range obs.events {
			if r, ok := e.data.(core.AcquireResult); ok && (r.HandedOff != (r.BlockedBy == hold.Field()) || r.Field != hold.Field()) {
				t.Errorf("acquire end: got %+v", r)
			}
		}
	})
}

// ordered notes its calls in a list of several.
type ordered struct {
	name string
	list *[]string
	then func()
}

func (o ordered) observer() *core.Observer { return &core.Observer{AcquireEnd: o.observeAcquireEnd} }

func (o ordered) observeAcquireEnd(context.Context, core.AcquireResult) {
	*o.list = append(*o.list, o.name)
	if o.then != nil {
		o.then()
	}
}

func TestObservers_SeveralInOrderAndPanicsContained(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		var calls []string
		boom := func() { panic("broken observer") }
		locks := b.locks(core.WithObserver(ordered{"a", &calls, boom}.observer(), ordered{"b", &calls, nil}.observer()),
			core.WithObserver(ordered{"c", &calls, boom}.observer()), core.WithObserver(panicking{}.observer()))
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		if ctx == nil || ctx.Err() != nil {
			t.Errorf("context: got %v", ctx)
		}
		released(t, hold)
		if want := []string{"a", "b", "c"}; !slices.Equal(calls, want) {
			t.Errorf("calls: got %q, want %q", calls, want)
		}
		b.wantGone("k")
	})
}

// panicking breaks wherever a context is expected, or gives none.
type panicking struct{}

func (p panicking) observer() *core.Observer {
	return &core.Observer{AcquireStart: p.observeAcquireStart, HoldStart: p.observeHoldStart, HoldEnd: p.observeHoldEnd}
}

func (panicking) observeAcquireStart(context.Context, core.Acquisition) context.Context { return nil }

func (panicking) observeHoldStart(context.Context, core.HoldInfo) context.Context { panic("broken") }

func (panicking) observeHoldEnd(context.Context, core.HoldResult) { panic("broken") }

func TestObservers_NilIsAnError(t *testing.T) {
	t.Parallel()
	_, err := core.New(nowhere(t), core.WithObserver(newRecorder().observer(), nil))
	wantErr(t, err, core.ErrInvalid)
}

// A function that an observer does not have is not called.
func TestObservers_OfNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks(core.WithObserver(&core.Observer{})).Lock("k"))
		released(t, hold)
	})
}

// Every event of a MultiLock has all of its keys, and the client that takes them.
func TestObservers_KeysAndClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()), core.WithPrefix("shop:"))
		_, hold := acquired(t, t.Context(), locks.MultiLock("b", "a"))
		released(t, hold)
		_, single := acquired(t, t.Context(), locks.Lock("c"))
		released(t, single)
		start := obs.first(t, "acquire start").data.(core.Acquisition)
		info := obs.first(t, "hold start").data.(core.HoldInfo)
		end := obs.first(t, "hold end").data.(core.HoldResult)
		for _, a := range []core.Acquisition{start, info.Acquisition, end.Acquisition} {
			if !slices.Equal(a.AllKeys(), hold.Keys()) || a != start || a.ClientID != locks.ID() {
				t.Errorf("got the keys %q of client %s, want %q of %s", a.AllKeys(), a.ClientID, hold.Keys(), locks.ID())
			}
		}
		last := obs.last(t, "hold start").data.(core.HoldInfo)
		if got := last.AllKeys(); len(got) != 1 || got[0] != "shop:c" {
			t.Errorf("of one lock: got the keys %q", got)
		}
	})
}

// clients counts the clients that are open.
type clients struct {
	mu   sync.Mutex
	open []string
}

func (c *clients) observer() *core.Observer { return &core.Observer{Client: c.observeClient} }

func (c *clients) observeClient(locks *core.Client) (closed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, locks.ID())
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = slices.DeleteFunc(c.open, func(id string) bool { return id == locks.ID() })
	}
}

// careless returns no function and panics, in turn.
type careless struct{ panics bool }

func (c careless) observer() *core.Observer { return &core.Observer{Client: c.observeClient} }

func (c careless) observeClient(*core.Client) (closed func()) {
	if c.panics {
		panic("client")
	}
	return nil
}

func TestObservers_Client(t *testing.T) {
	t.Parallel()
	seen := &clients{}
	var all []string
	for range 2 {
		locks, err := core.New(nowhere(t), core.WithObserver(careless{true}.observer(), careless{false}.observer(), seen.observer()))
		must(t, err)
		all = append(all, locks.ID())
		defer func() {
			_ = locks.Close(t.Context())
			if slices.Contains(seen.open, locks.ID()) {
				t.Error("a closed client is still observed")
			}
			wantErr(t, locks.Close(t.Context()), core.ErrClosed)
		}()
	}
	if !slices.Equal(seen.open, all) {
		t.Errorf("got %v, want %v", seen.open, all)
	}
}
