package holding_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The first panic of each function of an observer is logged, without its value.
func TestObservers_PanicIsReportedOnce(t *testing.T) { //nolint:paralleltest // all tests share the log
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		locks := b.Locks(core.WithObserver(panickingObserver{}.observer()))
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.MustRelease(t, hold)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, "holding_test.panickingObserver.observeHoldStart") != 1 ||
			strings.Count(text, "holding_test.panickingObserver.observeHoldEnd") != 1 || strings.Contains(text, "broken") {
			t.Errorf("logged: %s", text)
		}
	})
}

func TestObservers_EventsOfOneHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		type key struct{}
		caller := context.WithValue(t.Context(), key{}, "caller")
		ctx, hold := locktest.MustAcquire(t, caller, b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.Label("pay-order"), core.LeaseTime(time.Minute))
		locktest.MustRelease(t, hold)
		obs.Want(t, "acquire start", "acquire end", "hold start", "hold end")

		if start := obs.First(t, "acquire start"); start.Ctx != caller {
			t.Error("the acquisition does not start from the caller's context")
		}
		if end := obs.First(t, "acquire end"); end.Ctx.Value(locktest.Nested("acquire")) == nil || end.Ctx.Value(key{}) == nil {
			t.Error("the end is not observed with the context from the start of the acquisition")
		}
		if start := obs.First(t, "hold start"); start.Ctx.Value(locktest.Nested("acquire")) != nil {
			t.Error("the context of the hold is derived from the context of the acquisition")
		}
		if ctx.Value(locktest.Nested("hold")) == nil || ctx.Value(key{}) == nil {
			t.Error("the context of the hold is not derived from the context of its observer")
		}
		if end := obs.First(t, "hold end"); end.Ctx.Value(locktest.Nested("hold")) == nil || end.Ctx.Err() != nil {
			t.Error("the end of the hold is observed with a context that is not its own, or has ended")
		}
	})
}

func TestObservers_EventData(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()), core.WithPrefix("shop:"))
		b.Take("shop:k", locktest.Stranger, 5*time.Second)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.Label("pay"))
		locktest.Pass(11 * time.Second)
		b.Del(t.Context(), "shop:k")
		locktest.Pass(11 * time.Second)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		obs.Want(t, "acquire start", "contention", "acquire end", "hold start", "renewal", "loss", "hold end")

		base := obs.First(t, "acquire start").Data.(core.Acquisition)
		if base.Key != "shop:k" || base.Keys != 1 || base.Kind != core.KindReentrant || base.Label != "pay" || base.Start.IsZero() {
			t.Errorf("acquisition: got %+v", base)
		}
		if c := obs.First(t, "contention").Data.(core.Contention); c.Acquisition != base || c.BlockedBy != locktest.Stranger || c.TTL <= 0 || c.TTL > 5*time.Second {
			t.Errorf("contention: got %+v", c)
		}
		end := obs.First(t, "acquire end").Data.(core.AcquireResult)
		if end.Acquisition != base || end.Outcome != core.OutcomeAcquired || end.Err != nil || !end.Contended || end.Attempts < 2 ||
			end.Waited < 5*time.Second || end.Waited > 6*time.Second || end.BlockedBy != locktest.Stranger || end.Field != hold.Field() || end.HandedOff {
			t.Errorf("acquire end: got %+v", end)
		}
		info := obs.First(t, "hold start").Data.(core.HoldInfo)
		if info.Acquisition != base || info.Field != hold.Field() || info.Reentrant || !info.Watchdog || info.Lease != 30*time.Second || info.Acquired.IsZero() {
			t.Errorf("hold start: got %+v", info)
		}
		if r := obs.First(t, "renewal").Data.(core.Renewal); r.HoldInfo != info || r.Err != nil || r.Late != 0 {
			t.Errorf("renewal: got %+v", r)
		}
		l := obs.First(t, "loss").Data.(core.Loss)
		locktest.WantErr(t, l.Cause, core.ErrLost)
		if l.HoldInfo != info {
			t.Errorf("loss: got %+v", l)
		}
		r := obs.First(t, "hold end").Data.(core.HoldResult)
		locktest.WantErr(t, r.Err, core.ErrLost)
		if r.HoldInfo != info || !r.Lost || r.Left || r.HandedOff || r.Held < 20*time.Second {
			t.Errorf("hold end: got %+v", r)
		}
	})
}

func TestObservers_Outcomes(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
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
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		want := []core.Outcome{core.OutcomeAcquired, core.OutcomeReentered, core.OutcomeBusy, core.OutcomeCanceled, core.OutcomeBackend}
		if got := obs.Outcomes(); !slices.Equal(got, want) {
			t.Errorf("outcomes: got %q, want %q", got, want)
		}
	})
}

// The error of a dialer may match the error of a context. The outcome is still an outage, because the caller's context
// has not ended.
func TestObservers_OutcomeOfADialerThatTimesOut(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"deadline": context.DeadlineExceeded, "canceled": context.Canceled} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			o := *b.Options()
			o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, cause }
			rdb := redis.NewClient(&o)
			defer rdb.Close()
			locks := locktest.NewClient(t, rdb, core.WithObserver(obs.Observer()))
			for range 2 {
				_, _, err := locks.Lock("k").Acquire(t.Context())
				locktest.WantErr(t, err, core.ErrUnavailable)
			}
			if got, want := obs.Outcomes(), []core.Outcome{core.OutcomeBackend, core.OutcomeBackend}; !slices.Equal(got, want) {
				t.Errorf("outcomes: got %q, want %q", got, want)
			}
		})
	}
}

// If the key is not a lock of the requested kind, the outcome is OutcomeKey, not that another client has the lock.
func TestObservers_MisuseIsNotBusy(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.ReadLock("k"))
		for _, try := range []func() error{
			func() error { _, _, err := locks.WriteLock("k").Acquire(ctx); return err },
			func() error { _, _, err := locks.FencedLock("k").Acquire(ctx); return err },
			func() error { _, _, err := locks.FencedLock("k").Acquire(t.Context()); return err },
			func() error { _, _, err := locks.MultiLock("k", "other").Acquire(t.Context()); return err },
		} {
			locktest.WantErr(t, try(), core.ErrInvalid)
		}
		locktest.MustRelease(t, hold)
		want := []core.Outcome{core.OutcomeAcquired, core.OutcomeKey, core.OutcomeKey, core.OutcomeKey, core.OutcomeKey}
		if got := obs.Outcomes(); !slices.Equal(got, want) {
			t.Errorf("outcomes: got %q, want %q", got, want)
		}
	})
}

// orderedObserver is an observer that appends its name to a list of several observers.
type orderedObserver struct {
	name string
	list *[]string
	then func()
}

func (o orderedObserver) observer() *core.Observer {
	return &core.Observer{AcquireEnd: o.observeAcquireEnd}
}

func (o orderedObserver) observeAcquireEnd(context.Context, core.AcquireResult) {
	*o.list = append(*o.list, o.name)
	if o.then != nil {
		o.then()
	}
}

func TestObservers_Several(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		var calls []string
		boom := func() { panic("broken observer") }
		locks := b.Locks(core.WithObserver(orderedObserver{"a", &calls, boom}.observer(), orderedObserver{"b", &calls, nil}.observer()),
			core.WithObserver(orderedObserver{"c", &calls, boom}.observer()), core.WithObserver(panickingObserver{}.observer()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		if ctx == nil || ctx.Err() != nil {
			t.Errorf("context: got %v", ctx)
		}
		locktest.MustRelease(t, hold)
		if want := []string{"a", "b", "c"}; !slices.Equal(calls, want) {
			t.Errorf("calls: got %q, want %q", calls, want)
		}
		b.WantGone("k")
	})
}

// panickingObserver is an observer that panics, or returns no context.
type panickingObserver struct{}

func (p panickingObserver) observer() *core.Observer {
	return &core.Observer{AcquireStart: p.observeAcquireStart, HoldStart: p.observeHoldStart, HoldEnd: p.observeHoldEnd}
}

func (panickingObserver) observeAcquireStart(context.Context, core.Acquisition) context.Context {
	return nil
}

func (panickingObserver) observeHoldStart(context.Context, core.HoldInfo) context.Context {
	panic("broken")
}

func (panickingObserver) observeHoldEnd(context.Context, core.HoldResult) { panic("broken") }

// endingKey is the key of a context value that points to the names of functions of an observer. These functions end their
// goroutine, as t.FailNow does.
type endingKey struct{}

// goroutineEnder returns an observer whose functions end the goroutine if the context asks for that.
func goroutineEnder() *core.Observer {
	at := func(ctx context.Context, function string) context.Context {
		if names, ok := ctx.Value(endingKey{}).(*string); ok && strings.Contains(*names, function) {
			runtime.Goexit()
		}
		return ctx
	}
	return &core.Observer{
		AcquireStart: func(ctx context.Context, _ core.Acquisition) context.Context { return at(ctx, "AcquireStart") },
		Contention:   func(ctx context.Context, _ core.Contention) { at(ctx, "Contention") },
		AcquireEnd:   func(ctx context.Context, _ core.AcquireResult) { at(ctx, "AcquireEnd") },
		HoldStart:    func(ctx context.Context, _ core.HoldInfo) context.Context { return at(ctx, "HoldStart") },
		HoldEnd:      func(ctx context.Context, _ core.HoldResult) { at(ctx, "HoldEnd") },
	}
}

// If an observer ends its goroutine, neither a hold nor a waiter is left, because no caller could release the hold.
func TestObservers_EndOfTheGoroutine(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		var function string
		ctx := context.WithValue(t.Context(), endingKey{}, &function)
		nothing := func(context.Context) error { return nil }
		for _, name := range []string{"AcquireStart", "AcquireEnd", "HoldStart", "HoldEnd", "Contention"} {
			var other *core.Hold
			if name == "Contention" {
				_, other = locktest.MustAcquire(t, t.Context(), w.Other)
			}
			function = name
			runEnding(func() {
				t.Errorf("%s: the goroutine goes on after Do: %v", name, w.Mine.Do(ctx, nothing, core.WaitTime(time.Minute)))
			})
			if other != nil {
				locktest.MustRelease(t, other)
			}
			wantNoneLeft(t, w, "acquire, "+name)
		}
		for _, name := range []string{"HoldStart", "HoldEnd", "HoldStart, HoldEnd"} {
			function = ""
			_, hold := locktest.MustAcquire(t, ctx, w.Mine)
			function = name
			runEnding(func() { hold.Handover(); t.Errorf("%s: the goroutine goes on after Handover", name) })
			wantNoneLeft(t, w, "handover, "+name)
		}
		for _, name := range []string{"AcquireEnd", "HoldStart"} {
			if !w.IsReentrant {
				continue
			}
			function = ""
			held, hold := locktest.MustAcquire(t, ctx, w.Mine)
			function = name
			runEnding(func() { t.Errorf("%s: the goroutine goes on after Do: %v", name, w.Mine.Do(held, nothing)) })
			function = ""
			locktest.MustRelease(t, hold)
			wantNoneLeft(t, w, "re-entry, "+name)
		}
	}, core.WithObserver(goroutineEnder()))
}

// When a Redlock reports its first refusal, it may hold the lock on other servers. If the observer ends the goroutine,
// these servers are freed, too.
func TestObservers_EndOfTheGoroutineOfARedlock(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Minute} {
		locktest.ParallelBubbleOf(t, "wait "+wait.String(), 3, func(t *testing.T, servers []*locktest.Redis) {
			for _, s := range servers[:2] {
				locktest.MustAcquire(t, t.Context(), s.Locks().Lock("k"))
			}
			function := "Contention"
			clients := locktest.BehindEach(t, servers, core.WithObserver(goroutineEnder()))
			ctx := context.WithValue(t.Context(), endingKey{}, &function)
			runEnding(func() {
				t.Error(core.Redlock("k", clients...).Do(ctx, func(context.Context) error { return nil }, core.WaitTime(wait)))
			})
			_, hold := locktest.MustAcquire(t, t.Context(), servers[2].Locks().Lock("k"), core.WaitTime(5*time.Second))
			locktest.MustRelease(t, hold)
		})
	}
}

// runEnding runs f in a goroutine and waits until the goroutine has ended.
func runEnding(f func()) {
	var ended sync.WaitGroup
	ended.Go(f)
	ended.Wait()
}

// wantNoneLeft checks that the other process gets the lock soon and that the process left nothing.
func wantNoneLeft(t *testing.T, w *locktest.World, after string) {
	t.Helper()
	_, hold := locktest.MustAcquire(t, t.Context(), w.Other, core.WaitTime(5*time.Second))
	locktest.MustRelease(t, hold)
	for _, c := range w.Clients {
		if s := c.Stats(); s.Holds != 0 || s.Waiters != 0 {
			t.Errorf("%s: left: %d holds and %d waiters", after, s.Holds, s.Waiters)
		}
	}
	w.WantNothing(after)
}

func TestObservers_NilIsAnError(t *testing.T) {
	t.Parallel()
	_, err := core.New(locktest.Nowhere(t), core.WithObserver((&locktest.Recorder{}).Observer(), nil))
	locktest.WantErr(t, err, core.ErrInvalid)
}

// A function that an observer does not have is not called.
func TestObservers_WithoutFunctions(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(&core.Observer{})).Lock("k"))
		locktest.MustRelease(t, hold)
	})
}

// Every event of a MultiLock has all of its keys, and the client that takes them.
func TestObservers_KeysAndClient(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()), core.WithPrefix("shop:"))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("b", "a"))
		locktest.MustRelease(t, hold)
		_, single := locktest.MustAcquire(t, t.Context(), locks.Lock("c"))
		locktest.MustRelease(t, single)
		start := obs.First(t, "acquire start").Data.(core.Acquisition)
		info := obs.First(t, "hold start").Data.(core.HoldInfo)
		end := obs.First(t, "hold end").Data.(core.HoldResult)
		for _, a := range []core.Acquisition{start, info.Acquisition, end.Acquisition} {
			if !slices.Equal(a.AllKeys(), hold.Keys()) || a != start || a.ClientID != locks.ID() {
				t.Errorf("got the keys %q of client %s, want %q of %s", a.AllKeys(), a.ClientID, hold.Keys(), locks.ID())
			}
		}
		last := obs.Last(t, "hold start").Data.(core.HoldInfo)
		if got := last.AllKeys(); len(got) != 1 || got[0] != "shop:c" {
			t.Errorf("of one lock: got the keys %q", got)
		}
	})
}

// clients counts open clients.
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

// carelessObserver is an observer whose Client returns no function, or panics.
type carelessObserver struct{ panics bool }

func (c carelessObserver) observer() *core.Observer { return &core.Observer{Client: c.observeClient} }

func (c carelessObserver) observeClient(*core.Client) (closed func()) {
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
		locks, err := core.New(locktest.Nowhere(t), core.WithObserver(carelessObserver{true}.observer(), carelessObserver{false}.observer(), seen.observer()))
		locktest.Must(t, err)
		all = append(all, locks.ID())
		defer func() {
			_ = locks.Close(t.Context())
			if slices.Contains(seen.open, locks.ID()) {
				t.Error("a closed client is still observed")
			}
			locktest.WantErr(t, locks.Close(t.Context()), core.ErrClosed)
		}()
	}
	if !slices.Equal(seen.open, all) {
		t.Errorf("got %v, want %v", seen.open, all)
	}
}

// holdResults returns the results of the holds that have ended, in order.
func holdResults(r *locktest.Recorder) (all []core.HoldResult) {
	for _, e := range r.Events() {
		if end, ok := e.Data.(core.HoldResult); ok {
			all = append(all, end)
		}
	}
	return all
}

// remaining ends a hold of a minute after some time. It returns the rest of the lease that observers get.
func remaining(t *testing.T, b *locktest.Redis, after time.Duration, end func(h *core.Hold) error) time.Duration {
	t.Helper()
	obs := &locktest.Recorder{}
	_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Minute))
	locktest.Pass(after)
	locktest.WantOK(t, end(hold))
	return holdResults(obs)[0].Remaining
}

// Observers get the time that was left of the lease when a Release, a Leave or a Handover began.
func TestHoldResult_Remaining(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *core.Hold) error{
		"release": func(t *testing.T, h *core.Hold) error { t.Helper(); return h.Release(t.Context()) },
		"leave":   func(t *testing.T, h *core.Hold) error { t.Helper(); return h.Leave(t.Context(), time.Second) },
		"handover": func(t *testing.T, h *core.Hold) error {
			t.Helper()
			_, next := h.Handover()
			return next.Release(t.Context())
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			left := remaining(t, b, 45*time.Second, func(h *core.Hold) error { return end(t, h) })
			if left <= 14*time.Second || left > 15*time.Second {
				t.Errorf("got %s after 45 s of a minute, want a little less than 15 s", left)
			}
		})
	}
}

// For a lost hold, observers get no remaining lease, whether the clock or the release has found the loss.
func TestHoldResult_RemainingOfALostHold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *locktest.Redis){
		"its time has expired": func(*locktest.Redis) { locktest.Pass(2 * time.Minute) },
		"the key has gone":     func(b *locktest.Redis) { b.Del(b.T.Context(), "k") },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Minute))
			lose(b)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			if end := holdResults(obs)[0]; end.Remaining != 0 || !end.Lost {
				t.Errorf("got %s of a lease that was lost: %t", end.Remaining, end.Lost)
			}
		})
	}
}
