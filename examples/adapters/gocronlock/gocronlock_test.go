package gocronlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/examples/adapters/gocronlock"
	"github.com/interlock-go/interlock/examples/leader/campaign"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// instance returns the lock client and the scheduler of an instance of a service. shutdown shuts down the scheduler once, because a second
// Shutdown of gocron waits until its timeout.
func instance(t *testing.T, redis *redistest.Server, opts ...core.Option) (locks *core.Client, scheduler gocron.Scheduler, shutdown func() error) {
	t.Helper()
	locks, err := core.New(redis.Client(), append([]core.Option{core.WithBackendTimeout(time.Minute)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if scheduler, err = gocron.NewScheduler(); err != nil {
		t.Fatal(err)
	}
	shutdown = sync.OnceValue(scheduler.Shutdown)
	t.Cleanup(func() {
		if err := shutdown(); err != nil {
			t.Error(err)
		}
		_ = locks.Close(t.Context())
	})
	return locks, scheduler, shutdown
}

// lockErrors records the errors of a Locker.
type lockErrors struct {
	mu  sync.Mutex
	all []error
}

func (l *lockErrors) option() gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, err)
	}))
}

func (l *lockErrors) await(t *testing.T, n int) []error {
	t.Helper()
	var got []error
	awaitEvent(t, "the errors of the Locker", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		got = l.all
		return len(got) >= n
	})
	return got
}

func awaitEvent(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// once starts a job with its scheduler.
func once() gocron.JobDefinition { return gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()) }

func isFree(t *testing.T, locks *core.Client, name string) bool {
	t.Helper()
	state, err := locks.Lock(name).State(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return len(state.Holders) == 0
}

// Three instances have the same tick. The clock of the third one is late: its tick comes after the job has ended.
func TestLocker_OneInstanceRuns(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	var ran atomic.Int32
	var skipped lockErrors
	entered, finish := make(chan struct{}, 3), make(chan struct{})
	start := func() *core.Client {
		locks, scheduler, _ := instance(t, redis)
		job := func(ctx context.Context) error {
			core.MustHold(ctx, "job:close-day")
			ran.Add(1)
			entered <- struct{}{}
			<-finish
			return nil
		}
		if _, err := gocronlock.NewLocker(locks, time.Hour).NewJob(scheduler, once(), "close-day", job, skipped.option()); err != nil {
			t.Fatal(err)
		}
		scheduler.Start()
		return locks
	}
	first := start()
	<-entered
	start()
	skipped.await(t, 1)
	close(finish)
	awaitEvent(t, "the end of the job", func() bool { return first.Stats().Holds == 0 })
	start()
	for _, err := range skipped.await(t, 2) {
		if !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("got %v", err)
		}
	}
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

// keep counts from the start of a run, and a run that is longer than keep frees the lock at its end.
func TestLocker_Keep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := core.New(redistest.New(t).Client())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(t.Context()) })
		locker := gocronlock.NewLocker(locks, time.Minute)
		work := func(d time.Duration) {
			lock, err := locker.Lock(t.Context(), "poll")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(d) // virtual time
			if err := lock.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		work(40 * time.Second)
		time.Sleep(19 * time.Second) // virtual time
		if _, err := locker.Lock(t.Context(), "poll"); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("59 s after the start: got %v", err)
		}
		time.Sleep(2 * time.Second) // virtual time
		work(2 * time.Minute)
		work(0)
	})
}

// A run loses its lock before its task begins, and then comes the next tick of this instance. The run keeps its own context,
// which has ended, and the instance runs the job again only when that run has ended.
func TestLocker_LossBeforeTheTask(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	locks, scheduler, _ := instance(t, redis, core.WithWatchdog(300*time.Millisecond)) // so that the loss is noticed soon
	locker := gocronlock.NewLocker(locks, 0)
	before, goOn, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan struct{})
	listener := gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) {
		close(before)
		<-goOn
	}), gocron.AfterJobRuns(func(uuid.UUID, string) { close(ended) }))
	job := func(ctx context.Context) error {
		done <- context.Cause(ctx)
		return nil
	}
	if _, err := locker.NewJob(scheduler, once(), "close-day", job, listener); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	<-before
	if err := redis.Client().Del(t.Context(), "job:close-day").Err(); err != nil { // an operator frees the lock
		t.Fatal(err)
	}
	awaitEvent(t, "the loss", func() bool { return len(locks.Holds()) == 0 })
	tick := func() error { // as gocron calls it
		next, err := locker.Lock(t.Context(), "close-day")
		if err == nil {
			t.Cleanup(func() { _ = next.Unlock(context.Background()) })
		}
		return err
	}
	if err := tick(); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("the next tick gets %v", err)
	}
	close(goOn)
	if cause := <-done; !errors.Is(cause, core.ErrLost) {
		t.Errorf("the task begins with a context that has ended with %v", cause)
	}
	<-ended
	awaitEvent(t, "a tick after the end of the run", func() bool { return tick() == nil })
}

// A duration job has other times in each instance, so that each would run it.
func TestLocker_DurationJob(t *testing.T) {
	t.Parallel()
	locks, scheduler, _ := instance(t, redistest.New(t))
	for name, when := range map[string]gocron.JobDefinition{
		"duration": gocron.DurationJob(time.Minute), "random duration": gocron.DurationRandomJob(time.Minute, time.Hour),
	} {
		_, err := gocronlock.NewLocker(locks, time.Second).NewJob(scheduler, when, "poll", func(context.Context) error { return nil })
		if err == nil || !strings.Contains(err.Error(), `job "poll"`) || !strings.Contains(err.Error(), "CronJob") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The context of a job ends with its lock. After that, after a panic and after a shutdown the lock is free.
func TestLocker_JobEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job  func(ctx context.Context, t *testing.T) error
		stop bool
		want error
	}{
		"loss": {want: core.ErrLost, job: func(ctx context.Context, t *testing.T) error {
			hold, _ := core.Held(ctx, "job:close-day")
			if err := hold.Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}},
		"shutdown": {stop: true, want: context.Canceled, job: func(ctx context.Context, _ *testing.T) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}},
		"panic": {want: gocron.ErrPanicRecovered, job: func(context.Context, *testing.T) error { panic("declined") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.New(t)
			locks, scheduler, shutdown := instance(t, redis)
			failed, entered := make(chan error, 1), make(chan struct{})
			listeners := gocron.WithEventListeners(
				gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }),
				gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}),
			)
			job := func(ctx context.Context) error {
				close(entered)
				return test.job(ctx, t)
			}
			if _, err := gocronlock.NewLocker(locks, 0).NewJob(scheduler, once(), "close-day", job, listeners); err != nil {
				t.Fatal(err)
			}
			scheduler.Start()
			<-entered
			if test.stop {
				if err := shutdown(); err != nil {
					t.Error(err)
				}
			}
			if err := <-failed; !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			awaitEvent(t, "the release", func() bool { return isFree(t, locks, "job:close-day") })
		})
	}
}

// If Redis does not answer, no instance runs the job, and the error is not "taken".
func TestLocker_Unavailable(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	locks, scheduler, _ := instance(t, redis, core.WithBackendTimeout(50*time.Millisecond)) // so that the call fails sooner
	redis.Down()
	t.Cleanup(redis.Up)
	var skipped lockErrors
	_, err := gocronlock.NewLocker(locks, 0).NewJob(scheduler, once(), "close-day",
		func(context.Context) error { t.Error("the job ran"); return nil }, skipped.option())
	if err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	if got := skipped.await(t, 1); !errors.Is(got[0], core.ErrUnavailable) || errors.Is(got[0], core.ErrNotAcquired) {
		t.Errorf("got %v", got[0])
	}
}

// candidate returns the Elector and the scheduler of an instance that may lead. resign ends its term.
func candidate(t *testing.T, redis *redistest.Server) (e *gocronlock.Elector, scheduler gocron.Scheduler, resign func()) {
	t.Helper()
	locks, err := core.New(redis.Client(), core.WithBackendTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	e = &gocronlock.Elector{}
	if scheduler, err = gocron.NewScheduler(gocron.WithDistributedElector(e)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- campaign.Run(ctx, locks.Lock("leader"), e.Lead, func(error) {}) }()
	resign = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() {
		_ = scheduler.Shutdown()
		resign()
		_ = locks.Close(t.Context())
	})
	return e, scheduler, resign
}

func leads(t *testing.T, e *gocronlock.Elector) func() bool {
	t.Helper()
	return func() bool { return e.IsLeader(t.Context()) == nil }
}

// The leader runs the jobs. When it loses the lock, its job ends and an instance leads again, with a larger token. When the
// second instance resigns, the first leads.
func TestElector(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	first, scheduler, _ := candidate(t, redis)
	awaitEvent(t, "the first instance leads", leads(t, first))
	second, _, resign := candidate(t, redis)
	tokens, ended := make(chan int64, 1), make(chan error, 1)
	job := func(ctx context.Context) error {
		if second.IsLeader(ctx) == nil {
			t.Error("two leaders")
		}
		hold := core.MustHold(ctx, "leader")
		tokens <- hold.Token()
		if err := hold.Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	}
	if _, err := first.NewJob(scheduler, once(), "close-day", job); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	if cause := <-ended; !errors.Is(cause, core.ErrLost) {
		t.Errorf("the context of the job ended with %v", cause)
	}
	awaitEvent(t, "an instance leads again", func() bool { return leads(t, first)() || leads(t, second)() })
	resign()
	awaitEvent(t, "the first instance leads", leads(t, first))
	late := func(ctx context.Context) error {
		tokens <- core.MustHold(ctx, "leader").Token()
		return nil
	}
	if _, err := first.NewJob(scheduler, once(), "late", late); err != nil {
		t.Fatal(err)
	}
	if early, late := <-tokens, <-tokens; early == 0 || late <= early {
		t.Errorf("token %d after %d", late, early)
	}
}

// A job that goes on after the loss of its term does not get the token of a later term of the same instance.
func TestElector_TokenOfTheTerm(t *testing.T) {
	t.Parallel()
	locks, scheduler, _ := instance(t, redistest.New(t))
	var elector gocronlock.Elector
	lead := func() (hold *core.Hold, end func()) {
		ctx, hold, err := locks.FencedLock("leader").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- elector.Lead(ctx, hold.Token()) }()
		awaitEvent(t, "the lead", func() bool { return elector.IsLeader(ctx) == nil })
		return hold, func() {
			_ = hold.Release(t.Context())
			<-ended
		}
	}
	first, endFirst := lead()
	begun, goOn, tokens := make(chan int64), make(chan struct{}), make(chan int64)
	job, err := elector.NewJob(scheduler, once(), "close-day", func(ctx context.Context) error {
		begun <- core.MustHold(ctx, "leader").Token()
		<-goOn // the job ignores the end of its context
		hold, _ := core.Held(ctx, "leader")
		tokens <- hold.Token()
		return nil
	}, gocron.WithName("another"))
	if err != nil {
		t.Fatal(err)
	}
	if job.Name() != "close-day" {
		t.Errorf("the name of the job is %q", job.Name())
	}
	scheduler.Start()
	if token := <-begun; token != first.Token() {
		t.Errorf("the job begins with the token %d, the term has %d", token, first.Token())
	}
	endFirst()
	_, endSecond := lead()
	defer endSecond()
	close(goOn)
	if token := <-tokens; token != 0 {
		t.Errorf("after the loss the job has the token %d", token)
	}
}

// The term ends after gocron has asked for the leader. The job does not run.
func TestElector_TermEndsBeforeTheJob(t *testing.T) {
	t.Parallel()
	locks, _, _ := instance(t, redistest.New(t))
	var elector gocronlock.Elector
	ctx, hold, err := locks.FencedLock("leader").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = elector.Lead(ctx, hold.Token()) }()
	awaitEvent(t, "the lead", func() bool { return elector.IsLeader(ctx) == nil })
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(&elector))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scheduler.Shutdown() })
	done := make(chan error, 1)
	_, err = elector.NewJob(scheduler, once(), "close-day", func(context.Context) error { done <- nil; return nil }, gocron.WithEventListeners(
		gocron.BeforeJobRuns(func(uuid.UUID, string) { _ = hold.Release(context.WithoutCancel(ctx)) }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { done <- err }),
	))
	if err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	if err := <-done; !errors.Is(err, gocronlock.ErrNotLeader) {
		t.Errorf("got %v, want ErrNotLeader", err)
	}
}
