package outages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// pipelinesSeen is a hook that records the names of commands. The names of a pipeline are one entry.
type pipelinesSeen struct {
	mu   sync.Mutex
	seen []string
}

func (s *pipelinesSeen) note(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, cmd := range cmds {
		names = append(names, cmd.Name())
	}
	s.seen = append(s.seen, strings.Join(names, " "))
}

func (s *pipelinesSeen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}

func (s *pipelinesSeen) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, "; ")
}

func (s *pipelinesSeen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *pipelinesSeen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *pipelinesSeen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds...)
		return next(ctx, cmds)
	}
}

// ackTime is the time for acknowledgements in tests where one replica does not acknowledge: enough for the other
// replicas on a slow machine.
const ackTime = time.Second

// acquireShort checks that an acquire fails because only acknowledged of wanted replicas acknowledge. It returns the error
// and the duration. It tries again if fewer replicas acknowledge, because a replica that runs may be slow.
func acquireShort(t *testing.T, lock core.Lock, wanted, acknowledged int) (short *core.ReplicationError, took time.Duration) {
	t.Helper()
	for end := time.Now().Add(locktest.HangTimeout); ; {
		start := time.Now()
		_, hold, err := lock.Acquire(t.Context())
		took = time.Since(start)
		short, _ = errors.AsType[*core.ReplicationError](err)
		if short != nil && short.Wanted == wanted && short.Acknowledged < acknowledged && time.Now().Before(end) {
			continue
		}
		if hold != nil {
			t.Error("got a hold")
		}
		locktest.WantShort(t, err, wanted, acknowledged)
		return short, took
	}
}

// startReplicated starts a master with replicas.
func startReplicated(t *testing.T, replicas int) (*redisserver.Replicated, *locktest.Redis) {
	t.Helper()
	r := redisserver.StartReplicated(t, replicas)
	return r, &locktest.Redis{T: t, Client: r.Master.Client(), Connect: r.Master.Client, Opts: []core.Option{locktest.Patient}}
}

// While the replicas are there, they acknowledge as requested.
func TestReplicas_Acknowledge(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 2)
	for name, acks := range map[string]core.Acks{
		"none": core.AcksNone, "one": core.Acks(1), "two": core.Acks(2), "majority": core.AcksMajority, "all": core.AcksAll,
	} {
		locks := b.Locks(core.WithReplicaAcks(acks, 2*time.Second))
		for _, lock := range []core.Lock{
			locks.Lock(name), locks.FencedLock(name + ":fenced"), locks.SpinLock(name + ":spin"), locks.MultiLock(name+":1", name+":2"),
		} {
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
			if acks != core.AcksNone && acks != core.Acks(1) && acks != core.AcksMajority {
				for _, s := range r.Replicas {
					if got := s.Client().Exists(t.Context(), hold.Key()).Val(); got != 1 {
						t.Errorf("%s: a replica does not have %s", name, hold.Key())
					}
				}
			}
			_, again := locktest.MustAcquire(t, ctx, lock)
			locktest.MustRelease(t, again)
			if err := hold.Refresh(ctx, time.Minute); err != nil {
				t.Errorf("%s: refresh: %v", name, err)
			}
			locktest.MustRelease(t, hold)
			b.WantGone(hold.Key())
		}
	}
}

// A stopped replica does not acknowledge. The acquisition fails within the time for acknowledgements and frees the
// lock. Clients without acknowledgements go on, and clients that ask for fewer replicas succeed.
func TestReplicas_ShortfallIsUndone(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 2)
	all := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	majority := b.Locks(core.WithReplicaAcks(core.AcksMajority, 2*time.Second))
	locktest.Warm(t, all)
	r.Replicas[0].Stop()
	for name, lock := range map[string]core.Lock{
		"plain": all.Lock("k"), "fenced": all.FencedLock("f"), "multi": all.MultiLock("m1", "m2"),
	} {
		if _, took := acquireShort(t, lock, 2, 1); took < ackTime {
			t.Errorf("%s: failed after %s, before the end of the time for acknowledgements", name, took)
		}
	}
	locktest.Eventually(t, "the released lock is gone", func() bool { return b.Exists(t.Context(), "k", "f", "m1", "m2").Val() == 0 })
	_, hold := locktest.AcquireAcknowledged(t, majority.Lock("k"))
	locktest.MustRelease(t, hold)
	_, hold = locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
	_, _, err := all.Lock("k").Acquire(t.Context(), core.WaitTime(0))
	if !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("of a lock that is taken: %v, want %v", err, core.ErrNotAcquired)
	}
	locktest.MustRelease(t, hold)

	r.Replicas[0].Continue()
	locktest.Eventually(t, "the replica is back", func() bool {
		return all.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// Operations on counts and markers are acknowledged, too. If too few replicas acknowledge an operation, it returns an
// error and goes on in the background until enough do. It is executed once.
func TestReplicas_AcknowledgeCounts(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	locks := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	sem, latch, pool := locks.PlainSemaphore("sem"), locks.CountDownLatch("latch"), locks.Semaphore("pool", 0)
	patient := b.Locks(core.WithReplicaAcks(core.AcksAll, 10*ackTime), core.WithWatchdog(100*ackTime)) // while the replica runs
	replica := r.Replicas[0].Client()
	for name, set := range map[string]func() (bool, error){
		"sem":   func() (bool, error) { return patient.PlainSemaphore("sem").TrySetPermits(t.Context(), 5) },
		"latch": func() (bool, error) { return patient.CountDownLatch("latch").TrySetCount(t.Context(), 2) },
		"pool":  func() (bool, error) { return patient.Semaphore("pool", 0).TrySetPermits(t.Context(), 5) },
	} {
		done, err := set()
		locktest.Must(t, err)
		if got := replica.Exists(t.Context(), name).Val(); got != 1 || !done {
			t.Errorf("%s: set %t, and the replica has it: %d", name, done, got)
		}
	}
	_, err := patient.CountDownLatch("other").TrySetCount(t.Context(), 1)
	locktest.Must(t, err)
	_, hold := locktest.AcquireAcknowledged(t, locks.Lock("left"), core.LeaseTime(time.Hour))
	r.Replicas[0].Stop()
	var all sync.WaitGroup
	for name, change := range map[string]func() error{
		"Release":    func() error { return sem.Release(t.Context(), 1) },
		"CountDown":  func() error { return latch.CountDown(t.Context()) },
		"AddPermits": func() error { return pool.AddPermits(t.Context(), 1) },
	} {
		all.Go(func() {
			err := change()
			locktest.WantShort(t, err, 1, 0)
			if !strings.Contains(fmt.Sprint(err), "goes on in the background") {
				t.Errorf("%s: %v does not say that it goes on", name, err)
			}
		})
	}
	all.Wait()
	_, err = locks.CountDownLatch("other").Delete(t.Context())
	locktest.WantShort(t, err, 1, 0)
	locktest.WantShort(t, hold.Leave(t.Context(), time.Hour), 1, 0)
	r.Replicas[0].Continue()
	for name, want := range map[string]string{"sem": "6", "latch": "1", "pool": "6", "other": ""} {
		locktest.Eventually(t, name+" on the replica", func() bool { return replica.Get(t.Context(), name).Val() == want })
		if got := b.Get(t.Context(), name).Val(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	locktest.Must(t, patient.PlainSemaphore("sem").Release(t.Context(), 1))
}

// Redis refuses the question for its number of replicas. The client waits if the refusal passes, and fails at once
// otherwise.
func TestReplicas_QuestionIsRefused(t *testing.T) {
	t.Parallel()
	for says, passes := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                true,
		"NOPERM this user has no permissions to run the 'info' command": false,
	} {
		locktest.Parallel(t, says, func(t *testing.T) {
			r := locktest.NewProxied(t)
			rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr()})
			defer func() { _ = rdb.Close() }()
			locks := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.AcksAll, ackTime), core.WithBackendTimeout(ackTime))
			refused := r.Proxy.AnswerError(faultproxy.Command("info"), says)
			got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
			if !passes {
				err := (<-got).Err
				locktest.WantErr(t, err, core.ErrUnavailable)
				if !strings.Contains(fmt.Sprint(err), "redis refuses this until") {
					t.Errorf("%v does not say that it does not pass", err)
				}
				return
			}
			select {
			case o := <-got:
				t.Fatalf("the caller did not wait until the refusal passed: %v", o.Err)
			case <-time.After(2 * ackTime): // the refusal lasts longer than the backend timeout
			}
			refused.Remove()
			locktest.MustRelease(t, locktest.Got(r.T, got).Hold)
		})
	}
}

// A replica that is gone may become the next master, so it still counts.
func TestReplicas_GoneReplicasCount(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 2)
	all := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	two := b.Locks(core.WithReplicaAcks(core.Acks(2), ackTime))
	majority := b.Locks(core.WithReplicaAcks(core.AcksMajority, ackTime))
	for _, locks := range []*core.Client{all, two, majority} {
		locktest.Eventually(t, "all acknowledge", func() bool {
			return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
		})
	}
	r.Replicas[0].Kill()
	locktest.Eventually(t, "the replica has gone", func() bool {
		return strings.Contains(b.Info(t.Context(), "replication").Val(), "connected_slaves:1")
	})
	for range 2 {
		if short, _ := acquireShort(t, all.Lock("k"), 2, 1); short.Replicas != 2 && short.Replicas != 1 {
			t.Errorf("replicas at the last look: %d", short.Replicas)
		}
	}
	acquireShort(t, two.Lock("k"), 2, 1)
	_, hold := locktest.AcquireAcknowledged(t, majority.Lock("other"), core.WaitTime(20*time.Second))
	locktest.MustRelease(t, hold)
	r.Replicas[1].Kill()
	_, _, err := majority.Lock("other").Acquire(t.Context())
	locktest.WantShort(t, err, 1, 0)
}

// If a client asks for more replicas than exist, the acquisition fails, and the error says why. AcksAll without
// replicas is satisfied.
func TestReplicas_MoreThanExist(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks := locktest.NewClient(t, srv.Client(), core.WithReplicaAcks(core.Acks(1), ackTime))
	_, _, err := locks.Lock("k").Acquire(t.Context())
	locktest.WantShort(t, err, 1, 0)
	if err != nil && !strings.Contains(err.Error(), "the master has only 0") {
		t.Errorf("the error does not say that there are none: %v", err)
	}
	if text := core.ErrorText(err); !strings.Contains(text, "the master has only 0") {
		t.Errorf("the text for logs does not say that there are none: %v", text)
	}
	for _, acks := range []core.Acks{core.AcksAll, core.AcksMajority} {
		_, hold := locktest.MustAcquire(t, t.Context(), locktest.NewClient(t, srv.Client(), core.WithReplicaAcks(acks, ackTime)).Lock("all"))
		locktest.MustRelease(t, hold)
	}
}

// A new replica counts within a second.
func TestReplicas_NewReplicasCount(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	locks := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	b.Warm(locks)
	late := r.Add()
	late.Stop()
	var err error
	locktest.Eventually(t, "the new replica counts", func() bool {
		_, hold, failed := locks.Lock("k").Acquire(t.Context())
		_ = hold.Release(t.Context())
		err = failed
		short, ok := errors.AsType[*core.ReplicationError](failed)
		return ok && short.Wanted == 2 && short.Acknowledged == 1 // the other replica may be slow, too
	})
	locktest.WantShort(t, err, 2, 1)
}

// A renewal that too few replicas acknowledge counts as failed. The hold is lost in time although the master has
// renewed the lease.
func TestReplicas_RenewalShortfall(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	watchdog := locktest.Unhurried(4500 * time.Millisecond)
	seen := &locktest.Renewals{}
	locks := b.Locks(core.WithWatchdog(watchdog), core.WithReplicaAcks(core.AcksAll, watchdog/10), core.WithObserver(seen.Observer()))
	beside := b.Locks(core.WithWatchdog(watchdog))
	ctx, hold := locktest.AcquireAcknowledged(t, locks.Lock("k"))
	other, otherHold := locktest.MustAcquire(t, t.Context(), beside.Lock("other"))
	locktest.Eventually(t, "a renewal", func() bool { return seen.Good() > 0 })

	r.Replicas[0].Stop()
	stopped, gone := time.Now(), false
	for ctx.Err() == nil {
		there := b.Exists(t.Context(), "k").Val() == 1
		gone = !there && ctx.Err() == nil
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond): // between two looks
		}
	}
	if took := time.Since(stopped); took > locktest.Measured(watchdog+time.Second) {
		t.Errorf("lost after %s, want at the end of a lease of %s", took, watchdog)
	}
	locktest.WantEnded(t, ctx, core.ErrLost)
	if gone { // the lock is freed after the end of the hold
		t.Error("the key has ended before the hold")
	}
	locktest.WantAlive(t, other)
	locktest.WantShort(t, seen.Failure(), 1, 0)
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	locktest.MustRelease(t, otherHold)
}

// If too few replicas acknowledge a Refresh or a re-entry, the hold keeps its old deadline.
func TestReplicas_RefreshAndReentry(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	locks := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	lock := locks.Lock("k")
	ctx, hold := locktest.AcquireAcknowledged(t, lock, core.LeaseTime(time.Minute))
	r.Replicas[0].Stop()
	locktest.WantShort(t, hold.Refresh(ctx, time.Hour), 1, 0)
	if left := hold.Remaining(); left > time.Minute {
		t.Errorf("the hold lasts for %s, want at most 1m", left)
	}
	_, again, err := lock.Acquire(ctx, core.LeaseTime(time.Hour))
	if again != nil {
		t.Error("got a hold with an error")
	}
	locktest.WantShort(t, err, 1, 0)
	locktest.Eventually(t, "one hold in Redis", func() bool { return b.HGet(t.Context(), "k", hold.Field()).Val() == "1" })
	locktest.WantAlive(t, ctx)
	locktest.MustRelease(t, hold)
	b.WantGone("k")
}

// The lock is not handed off, because replicas have to acknowledge the command of every holder.
func TestReplicas_NoHandOff(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	locks := b.Locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	_, hold := locktest.AcquireAcknowledged(t, locks.Lock("k"))
	next := make(chan error, 1)
	go func() {
		_, hold, err := locks.Lock("k").Acquire(context.Background())
		_ = hold.Release(context.Background())
		next <- err
	}()
	locktest.AwaitWaiters(t, locks, 1)
	r.Replicas[0].Stop()
	locktest.MustRelease(t, hold)
	locktest.WantShort(t, <-next, 1, 0)
	locktest.Eventually(t, "the lock is free", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
}

// The wait time bounds the wait for replicas.
func TestReplicas_WithinTheWaitTime(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	locks := b.Locks(core.WithReplicaAcks(core.AcksAll, 3*time.Second))
	b.Warm(locks)
	r.Replicas[0].Stop()
	start := time.Now()
	_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
	locktest.WantErr(t, err, core.ErrUnavailable)
	locktest.WantSoon(t, "after %s", start, locktest.Measured(2*time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, _, err = locks.Lock("k").Acquire(ctx)
	locktest.WantErr(t, err, context.Canceled)
	locktest.Eventually(t, "nothing is left", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
}

// The script and the WAIT for replicas travel together in one round trip on one connection, and hooks see them
// together.
func TestReplicas_OnePipeline(t *testing.T) {
	t.Parallel()
	r := redisserver.StartReplicated(t, 1)
	rdb := r.Master.Client()
	seen := &pipelinesSeen{}
	rdb.AddHook(seen)
	locks := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.AcksAll, 2*time.Second))
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("warm"))
	locktest.MustRelease(t, hold)
	seen.forget()
	_, hold = locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.WantSame(t, "hooks saw", seen.list(), "evalsha wait")
	locktest.MustRelease(t, hold)
}

// If WAIT is refused or has no answer, the lock is not acquired, and nothing is left behind.
func TestReplicas_WaitWithoutAnswer(t *testing.T) {
	t.Parallel()
	r, b := startReplicated(t, 1)
	proxy, rdb := faultproxy.Around(t, r.Master.Client())
	locks := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.Acks(1), 2*time.Second))
	b.Warm(locks)
	refused := proxy.AnswerError(faultproxy.Command("wait"), "NOPERM this user has no permissions to run the 'wait' command")
	_, _, err := locks.Lock("k").Acquire(t.Context())
	locktest.WantShort(t, err, 1, 0)
	if text := core.ErrorText(err); !strings.Contains(text, "NOPERM") {
		t.Errorf("the error does not say why: %s", text)
	}
	refused.Remove()
	// One of the two answers arrives before the connection ends. If the end comes first, the result of the script is
	// unknown too, and the next attempt gets the lock.
	locktest.Eventually(t, "an answer to the script alone", func() bool {
		proxy.DropReply(faultproxy.Once(faultproxy.Command("wait")))
		_, hold, err := locks.Lock("k").Acquire(t.Context())
		if err == nil {
			locktest.MustRelease(t, hold)
			return false
		}
		locktest.WantShort(t, err, 1, 0)
		return true
	})
	locktest.Eventually(t, "nothing is left", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
}

func TestReplicas_BadOptions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.Option{
		"unknown":    {core.WithReplicaAcks(-3, time.Second)},
		"many":       {core.WithReplicaAcks(1001, time.Second)},
		"no time":    {core.WithReplicaAcks(core.AcksAll, 0)},
		"little":     {core.WithReplicaAcks(core.AcksAll, time.Microsecond)},
		"more than":  {core.WithReplicaAcks(core.AcksAll, time.Second), core.WithWatchdog(9 * time.Second)},
		"by default": {core.WithReplicaAcks(core.AcksAll, 4*time.Second)},
	} {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		_, err := core.New(rdb, opts...)
		_ = rdb.Close()
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An acquisition with acknowledgements first asks Redis how many replicas it has. If Redis does not answer, the
// acquisition fails within the backend timeout.
func TestReplicas_RedisIsDown(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		proxy.BlackHole(true)
		locks := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.AcksMajority, 100*time.Millisecond))
		for _, opts := range [][]core.AcquireOption{{core.WaitTime(0)}, {core.WaitTime(time.Minute)}} {
			o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), opts...)
			locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.Took > core.DefaultBackendTimeout+100*time.Millisecond {
				t.Errorf("the caller failed after %s", o.Took)
			}
		}
	})
}
