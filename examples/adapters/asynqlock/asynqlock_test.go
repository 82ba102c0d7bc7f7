package asynqlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/asynqlock"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // outages and failures are part of the tests
	goleak.VerifyTestMain(m)
}

// noWait is a rule file whose tasks do not wait for their locks.
const noWait = `rules:
  - func: task/pay
    key: "order:#{payload.id}"
    wait_time: none
    lease_time: 1h # for tests that shorten it
`

var waits = strings.ReplaceAll(noWait, "wait_time: none", "wait_time: 1h")

// shop is a server of asynq with tasks "pay", on one Redis, with locks on another Redis.
type shop struct {
	t         *testing.T
	redis     *redistest.Server // of the locks
	client    *asynq.Client
	inspector *asynq.Inspector
	ran       atomic.Int32
	refused   atomic.Int32         // how often a lock was not acquired
	failed    atomic.Int32         // the errors that the ErrorHandler saw
	serve     func() *asynq.Server // starts another server
	server    *asynq.Server
}

func open(t *testing.T, rules string, handler asynq.HandlerFunc, opts ...core.Option) *shop {
	t.Helper()
	queue := redistest.New(t)
	s := &shop{
		t: t, redis: redistest.New(t), client: asynq.NewClientFromRedisClient(queue.Client()),
		inspector: asynq.NewInspectorFromRedisClient(queue.Client()),
	}
	observer := &core.Observer{Rules: &aspect.Observer{Failure: func(context.Context, aspect.Failure) { s.refused.Add(1) }}}
	locks, err := core.New(s.redis.Client(), append([]core.Option{core.WithBackendTimeout(time.Minute), core.WithObserver(observer)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.Load("locks.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	locking, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := asynqlock.New(locking, set, map[string]any{"pay": order{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := asynq.NewServeMux()
	mux.Use(guard.Middleware)
	mux.HandleFunc("pay", func(ctx context.Context, task *asynq.Task) error {
		s.ran.Add(1)
		return handler(ctx, task)
	})
	s.serve = func() *asynq.Server {
		server := asynq.NewServerFromRedisClient(queue.Client(), asynqlock.Config(asynq.Config{
			Concurrency: 10, TaskCheckInterval: 10 * time.Millisecond, DelayedTaskCheckInterval: 20 * time.Millisecond,
			ShutdownTimeout: 100 * time.Millisecond, LogLevel: asynq.FatalLevel,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour }, // for ordinary failures
			ErrorHandler:   asynq.ErrorHandlerFunc(func(context.Context, *asynq.Task, error) { s.failed.Add(1) }),
		}))
		if err := server.Start(mux); err != nil {
			t.Fatal(err)
		}
		return server
	}
	s.server = s.serve()
	t.Cleanup(func() {
		s.redis.Up()
		s.server.Shutdown()
		_ = locks.Close(t.Context()) // its context is canceled, so Close ends the waits of aborted handlers
	})
	return s
}

func (s *shop) enqueue(id string, opts ...asynq.Option) {
	s.t.Helper()
	payload, err := json.Marshal(order{ID: "42"})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.Enqueue(asynq.NewTask("pay", payload), append(opts, asynq.TaskID(id), asynq.Retention(time.Hour))...); err != nil {
		s.t.Fatal(err)
	}
}

// await returns the task when it is in a state.
func (s *shop) await(id string, state asynq.TaskState) (info *asynq.TaskInfo) {
	s.t.Helper()
	awaitEvent(s.t, id+" is "+state.String(), func() bool {
		var err error
		info, err = s.inspector.GetTaskInfo("default", id)
		return err == nil && info.State == state
	})
	return info
}

func awaitEvent(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

func succeed(context.Context, *asynq.Task) error { return nil }

func TestServer_OneAtATime(t *testing.T) {
	t.Parallel()
	var inside, met atomic.Int32
	s := open(t, waits, func(context.Context, *asynq.Task) error {
		if inside.Add(1) > 1 {
			met.Add(1)
		}
		time.Sleep(time.Millisecond) // enough time for another task to overlap
		inside.Add(-1)
		return nil
	})
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, id := range ids {
		s.enqueue(id)
	}
	for _, id := range ids {
		s.await(id, asynq.TaskStateCompleted)
	}
	if met.Load() > 0 || s.ran.Load() != 6 {
		t.Errorf("%d of %d tasks overlapped", met.Load(), s.ran.Load())
	}
}

// asynq delivers a busy task again, and the task keeps its retries. Without Config, asynq would count an attempt.
func TestServer_BusyTaskKeepsItsRetries(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, succeed)
	s.redis.Take("order:42", time.Hour)
	s.enqueue("pay", asynq.MaxRetry(1))
	if info := s.await("pay", asynq.TaskStateRetry); info.Retried != 0 || strings.Contains(info.LastErr, "order:42") {
		t.Errorf("retried %d times, last error %q", info.Retried, info.LastErr)
	}
	s.redis.Free("order:42")
	s.await("pay", asynq.TaskStateCompleted)
	if s.ran.Load() != 1 || s.failed.Load() != 0 {
		t.Errorf("ran %d times, the ErrorHandler saw %d errors", s.ran.Load(), s.failed.Load())
	}
}

// asynq archives a task without retries whatever its error, so the guard tries again in the worker.
func TestServer_BusyTaskWithoutRetriesIsNotArchived(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, succeed)
	s.redis.Take("order:42", time.Hour)
	s.enqueue("pay", asynq.MaxRetry(0))
	awaitEvent(t, "a refusal", func() bool { return s.refused.Load() > 0 })
	s.redis.Free("order:42")
	s.await("pay", asynq.TaskStateCompleted)
	if s.ran.Load() != 1 {
		t.Errorf("ran %d times", s.ran.Load())
	}
}

// asynq archives a task without retries if its timeout passes while it waits for its lock.
func TestServer_BusyTaskWithoutRetriesTimesOut(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, succeed)
	s.redis.Take("order:42", time.Hour)
	s.enqueue("pay", asynq.MaxRetry(0), asynq.Timeout(time.Second))
	s.await("pay", asynq.TaskStateArchived)
	if s.ran.Load() != 0 {
		t.Errorf("ran %d times", s.ran.Load())
	}
}

// The handler's own errors count, also a refusal by a lock inside the handler.
func TestServer_FailuresCount(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"declined": errors.New("declined"), "inner lock": &aspect.RefusedError{RetryAfter: time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, noWait, func(context.Context, *asynq.Task) error { return failure })
			s.enqueue("last", asynq.MaxRetry(0))
			s.await("last", asynq.TaskStateArchived)
			s.enqueue("first", asynq.MaxRetry(3))
			if info := s.await("first", asynq.TaskStateRetry); info.Retried != 1 || s.ran.Load() != 2 || s.failed.Load() != 2 {
				t.Errorf("retried %d times, ran %d times, the ErrorHandler saw %d errors", info.Retried, s.ran.Load(), s.failed.Load())
			}
		})
	}
}

func TestServer_Loss(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, func(ctx context.Context, _ *asynq.Task) error {
		if err := aspect.HoldFrom(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
		return ctx.Err()
	})
	s.enqueue("pay", asynq.MaxRetry(3))
	if info := s.await("pay", asynq.TaskStateRetry); info.Retried != 1 {
		t.Errorf("retried %d times, want a counted failure", info.Retried)
	}
}

func TestServer_Panic(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, func(context.Context, *asynq.Task) error { panic("declined") })
	s.enqueue("a", asynq.MaxRetry(3))
	s.await("a", asynq.TaskStateRetry)
	s.enqueue("b", asynq.MaxRetry(3)) // finds the lock free
	s.await("b", asynq.TaskStateRetry)
	if s.ran.Load() != 2 {
		t.Errorf("ran %d times", s.ran.Load())
	}
}

// While the Redis of the locks does not answer, asynq delivers tasks again, and the tasks keep their retries.
func TestServer_LocksUnavailable(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, succeed, core.WithBackendTimeout(50*time.Millisecond)) // so that the call fails sooner
	s.redis.Down()
	s.enqueue("pay", asynq.MaxRetry(1))
	if info := s.await("pay", asynq.TaskStateRetry); info.Retried != 0 || s.ran.Load() != 0 {
		t.Errorf("retried %d times, ran %d times", info.Retried, s.ran.Load())
	}
	s.redis.Up()
	s.await("pay", asynq.TaskStateCompleted)
}

// asynq puts a task that waits at a shutdown back into the queue.
func TestServer_Shutdown(t *testing.T) {
	t.Parallel()
	s := open(t, waits, succeed)
	s.redis.Take("order:42", time.Hour)
	s.enqueue("pay", asynq.MaxRetry(0))
	s.await("pay", asynq.TaskStateActive)
	s.server.Shutdown()
	s.await("pay", asynq.TaskStatePending)
	s.redis.Free("order:42")
	s.server = s.serve()
	s.await("pay", asynq.TaskStateCompleted)
}

func TestServer_Skip(t *testing.T) {
	t.Parallel()
	s := open(t, noWait+"    on_busy: skip\n", succeed)
	s.redis.Take("order:42", time.Hour)
	s.enqueue("pay")
	s.await("pay", asynq.TaskStateCompleted)
	if s.ran.Load() != 0 {
		t.Error("the handler of a skipped task ran")
	}
}

// newGuard returns the result of New for a rule file.
func newGuard(t *testing.T, redis *redistest.Server, rules string, types map[string]any) (*asynqlock.Guard, error) {
	t.Helper()
	locks, err := core.New(redis.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	locking, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.Load("locks.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	return asynqlock.New(locking, set, types, nil)
}

func TestNew_Problems(t *testing.T) {
	t.Parallel()
	_, err := newGuard(t, redistest.New(t), "rules:\n  - {func: task/pya, key: a}\n  - {func: task/pay, key: \"order:#{payload.idd}\"}\n", map[string]any{"pay": order{}})
	if err == nil || !strings.Contains(err.Error(), `did you mean "task/pay"?`) || !strings.Contains(err.Error(), "has no field idd") {
		t.Errorf("got %v", err)
	}
}

// A handler returns the answer of an inner task on the same guard. The handler has run, so its failure counts.
func TestMiddleware_InnerTaskIsBusy(t *testing.T) {
	t.Parallel()
	redis := redistest.New(t)
	const rules = "rules:\n  - {func: task/pay, key: pay, wait_time: none}\n  - {func: task/mail, key: mail, wait_time: none}\n"
	guard, err := newGuard(t, redis, rules, map[string]any{"pay": nil, "mail": nil})
	if err != nil {
		t.Fatal(err)
	}
	mux := asynq.NewServeMux()
	mux.Use(guard.Middleware)
	mux.HandleFunc("mail", succeed)
	mux.HandleFunc("pay", func(ctx context.Context, _ *asynq.Task) error {
		return mux.ProcessTask(ctx, asynq.NewTask("mail", nil))
	})
	redis.Take("mail", time.Hour)
	isFailure := asynqlock.Config(asynq.Config{}).IsFailure
	if err := mux.ProcessTask(t.Context(), asynq.NewTask("mail", nil)); err == nil || isFailure(err) {
		t.Errorf("a busy task: %v, which counts as a failure", err)
	}
	if err := mux.ProcessTask(t.Context(), asynq.NewTask("pay", nil)); err == nil || !isFailure(err) {
		t.Errorf("a busy inner task: %v, which does not count as a failure", err)
	}
}
