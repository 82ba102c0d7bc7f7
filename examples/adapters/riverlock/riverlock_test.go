package riverlock_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/riverlock"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// charge is a kind of job that had another name before.
type charge struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

func (charge) Kind() string          { return "charge" }
func (charge) KindAliases() []string { return []string{"charge_card"} }

// old is charge under its former name.
type old charge

func (old) Kind() string { return "charge_card" }

func TestBehaviour(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.Func("job/charge")
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: endpoint, ID: "args.id", Tenant: "args.tenant",
		Code: func(s failpolicy.Status) int { return s.HTTP },
		Start: func(_ testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
			return adaptertest.ServeMessages(p, endpoint, serve)
		},
	})
}

// serve passes jobs through the middleware without a client, which would work a snoozed job again.
func serve(p adaptertest.MessageProgram) (func() error, func(context.Context, adaptertest.Call) error, error) {
	queue := func(ctx context.Context, job *rivertype.JobRow) error { return p.Queue(ctx, idOf(job)) }
	guard, problem := riverlock.New(p.Aspect, p.Rules, riverlock.Fallbacks{"queue": queue}, charge{})
	if guard == nil {
		return nil, nil, problem
	}
	deliver := func(ctx context.Context, c adaptertest.Call) error {
		args, err := json.Marshal(charge{c.ID, c.Tenant})
		if err != nil {
			return err
		}
		job := &rivertype.JobRow{Kind: "charge", EncodedArgs: args}
		return guard.Work(ctx, job, func(ctx context.Context) error { return p.Pay(ctx, idOf(job)) })
	}
	return func() error { return problem }, deliver, nil
}

func idOf(job *rivertype.JobRow) string {
	var args charge
	_ = json.Unmarshal(job.EncodedArgs, &args)
	return args.ID
}

// A job has the same key under its former name, also if the key contains the kind. Otherwise both jobs would run at a time.
func TestGuard_KindOfAnAlias(t *testing.T) {
	t.Parallel()
	locks, err := core.New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(t.Context()) }()
	locking, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("job/charge"), Key: "#{kind}:#{args.id}"}})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := riverlock.New(locking, set, nil, charge{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{charge{}.Kind(), old{}.Kind()} {
		job := &rivertype.JobRow{Kind: kind, EncodedArgs: []byte(`{"id": "42"}`)}
		if err := guard.Work(t.Context(), job, func(ctx context.Context) error {
			if key := aspect.HoldFrom(ctx).Key(); key != "charge:42" {
				t.Errorf("%s: the key is %s", kind, key)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

const noWait = `rules:
  - func: job/charge
    key: "order:#{args.id}"
    wait_time: none
    lease_time: 1h # for tests that shorten it
`

var waits = strings.ReplaceAll(noWait, "wait_time: none", "wait_time: 1h")

// later retries failed jobs after an hour.
type later struct{}

func (later) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(time.Hour) }

// shop is a client of River on SQLite.
type shop struct {
	t      *testing.T
	redis  *redistest.Server
	client *river.Client[*sql.Tx]
	ran    atomic.Int32
}

func open(t *testing.T, rules string, work func(ctx context.Context) error, opts ...core.Option) *shop {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "river.db")+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // SQLite has one writer
	driver, quiet := riversqlite.New(db), slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, redis: redistest.New(t)}
	locks, err := core.New(s.redis.Client(), append([]core.Option{core.WithBackendTimeout(time.Minute)}, opts...)...)
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
	guard, err := riverlock.New(locking, set, nil, charge{})
	if err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[charge]) error {
		s.ran.Add(1)
		return work(ctx)
	}))
	s.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}, Workers: workers,
		Middleware: []rivertype.Middleware{guard}, RetryPolicy: later{}, Logger: quiet, TestOnly: true,
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, SkipUnknownJobCheck: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.redis.Up()
		if err := s.client.StopAndCancel(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		_ = locks.Close(t.Context())
	})
	return s
}

// insert inserts a job for order 42.
func (s *shop) insert(args river.JobArgs, attempts int) (id int64) {
	s.t.Helper()
	inserted, err := s.client.Insert(s.t.Context(), args, &river.InsertOpts{MaxAttempts: attempts})
	if err != nil {
		s.t.Fatal(err)
	}
	return inserted.Job.ID
}

// await returns the job when it is as wanted.
func (s *shop) await(id int64, what string, wanted func(*rivertype.JobRow) bool) (job *rivertype.JobRow) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if job, err = s.client.JobGet(s.t.Context(), id); err == nil && wanted(job) {
			return job
		}
		if time.Now().After(end) {
			s.t.Fatalf("the job is not %s: %+v, %v", what, job, err)
		}
	}
}

func (s *shop) awaitState(id int64, state rivertype.JobState) *rivertype.JobRow {
	s.t.Helper()
	return s.await(id, string(state), func(job *rivertype.JobRow) bool { return job.State == state })
}

func (s *shop) awaitSnooze(id int64) *rivertype.JobRow {
	s.t.Helper()
	return s.await(id, "snoozed", func(job *rivertype.JobRow) bool {
		return job.State != rivertype.JobStateRunning && strings.Contains(string(job.Metadata), "snoozes")
	})
}

func succeed(context.Context) error { return nil }

func TestClient_OneAtATime(t *testing.T) {
	t.Parallel()
	var inside, met atomic.Int32
	s := open(t, waits, func(context.Context) error {
		if inside.Add(1) > 1 {
			met.Add(1)
		}
		time.Sleep(time.Millisecond) // enough time for another job to overlap
		inside.Add(-1)
		return nil
	})
	var ids []int64
	for range 6 {
		ids = append(ids, s.insert(charge{ID: "42"}, 1))
	}
	for _, id := range ids {
		s.awaitState(id, rivertype.JobStateCompleted)
	}
	if met.Load() > 0 {
		t.Errorf("%d jobs overlapped", met.Load())
	}
}

// A busy job is snoozed although it has a single attempt, also under its former name.
func TestClient_BusyJobIsSnoozed(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]river.JobArgs{"kind": charge{ID: "42"}, "alias": old{ID: "42"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, noWait, succeed)
			s.redis.Take("order:42", time.Hour)
			id := s.insert(args, 1)
			if job := s.awaitSnooze(id); job.Attempt != 0 || s.ran.Load() != 0 {
				t.Errorf("attempt %d, ran %d times", job.Attempt, s.ran.Load())
			}
			s.redis.Free("order:42")
			if job := s.awaitState(id, rivertype.JobStateCompleted); job.Attempt != 1 || s.ran.Load() != 1 {
				t.Errorf("attempt %d, ran %d times", job.Attempt, s.ran.Load())
			}
		})
	}
}

func TestClient_LocksUnavailable(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, succeed, core.WithBackendTimeout(50*time.Millisecond)) // so that the call fails sooner
	s.redis.Down()
	id := s.insert(charge{ID: "42"}, 1)
	s.awaitSnooze(id)
	s.redis.Up()
	s.awaitState(id, rivertype.JobStateCompleted)
}

// A job without a key, and a job that fails, take River's usual way.
func TestClient_FailuresCount(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, func(context.Context) error { return errors.New("declined") })
	noKey, declined := s.insert(charge{}, 1), s.insert(charge{ID: "42"}, 1)
	if job := s.awaitState(noKey, rivertype.JobStateDiscarded); !strings.Contains(job.Errors[0].Error, "args.id is empty") {
		t.Errorf("got %q", job.Errors[0].Error)
	}
	s.awaitState(declined, rivertype.JobStateDiscarded)
	if s.ran.Load() != 1 {
		t.Errorf("ran %d times", s.ran.Load())
	}
}

func TestClient_Loss(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, func(ctx context.Context) error {
		if err := aspect.HoldFrom(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("the context ended with %v", context.Cause(ctx))
		}
		return ctx.Err()
	})
	if job := s.awaitState(s.insert(charge{ID: "42"}, 3), rivertype.JobStateRetryable); job.Attempt != 1 {
		t.Errorf("attempt %d, want a counted failure", job.Attempt)
	}
}

func TestClient_Panic(t *testing.T) {
	t.Parallel()
	s := open(t, noWait, func(context.Context) error { panic("declined") })
	s.awaitState(s.insert(charge{ID: "42"}, 3), rivertype.JobStateRetryable)
	s.awaitState(s.insert(charge{ID: "42"}, 3), rivertype.JobStateRetryable) // finds the lock free
	if s.ran.Load() != 2 {
		t.Errorf("ran %d times", s.ran.Load())
	}
}

// A job that waits when the client stops is available again and keeps its attempts.
func TestClient_Stop(t *testing.T) {
	t.Parallel()
	s := open(t, waits, succeed)
	s.redis.Take("order:42", time.Hour)
	id := s.insert(charge{ID: "42"}, 1)
	s.awaitState(id, rivertype.JobStateRunning)
	if err := s.client.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if job := s.awaitState(id, rivertype.JobStateAvailable); job.Attempt != 0 || s.ran.Load() != 0 {
		t.Errorf("attempt %d, ran %d times", job.Attempt, s.ran.Load())
	}
}
