package core_test

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
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// ackTime is how long replicas have in tests where one of them does not acknowledge: enough for the others on a slow
// machine.
const ackTime = time.Second

// replicated is a master with replicas, and a client beside the locks to look at the master.
func replicated(t *testing.T, replicas int) (*redisserver.Replicated, *bed) {
	t.Helper()
	r := redisserver.StartReplicated(t, replicas)
	return r, &bed{t: t, Client: r.Master.Client(), connect: r.Master.Client, opts: []core.Option{patient}}
}

// wantShort wants an acquisition to have failed because too few replicas have acknowledged it.
func wantShort(t *testing.T, err error, wanted, acknowledged int) {
	t.Helper()
	wantErr(t, err, core.ErrUnavailable)
	short, ok := errors.AsType[*core.ReplicationError](err)
	if !ok {
		t.Fatalf("got %v, want a *ReplicationError", err)
	}
	if short.Wanted != wanted || short.Acknowledged != acknowledged {
		t.Errorf("wanted %d, acknowledged %d, want %d and %d: %v", short.Wanted, short.Acknowledged, wanted, acknowledged, err)
	}
}

// What is wanted comes, while the replicas are there.
func TestReplicas_Acknowledge(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 2)
	for name, acks := range map[string]core.Acks{
		"none": core.AcksNone, "one": core.Acks(1), "two": core.Acks(2), "majority": core.AcksMajority, "all": core.AcksAll,
	} {
		locks := b.locks(core.WithReplicaAcks(acks, 2*time.Second))
		for _, lock := range []core.Lock{
			locks.Lock(name), locks.FencedLock(name + ":fenced"), locks.SpinLock(name + ":spin"), locks.MultiLock(name+":1", name+":2"),
		} {
			ctx, hold := acquired(t, t.Context(), lock)
			if acks != core.AcksNone && acks != core.Acks(1) && acks != core.AcksMajority {
				for _, s := range r.Replicas {
					if got := s.Client().Exists(t.Context(), hold.Key()).Val(); got != 1 {
						t.Errorf("%s: a replica does not have %s", name, hold.Key())
					}
				}
			}
			_, again := acquired(t, ctx, lock)
			released(t, again)
			if err := hold.Refresh(ctx, time.Minute); err != nil {
				t.Errorf("%s: refresh: %v", name, err)
			}
			released(t, hold)
			b.wantGone(hold.Key())
		}
	}
}

// A replica that is stopped does not acknowledge: the acquisition fails within the time of the
// replicas, and gives back what it got. Clients that do not ask replicas go on beside it, and
// a smaller number is still there.
func TestReplicas_ShortfallIsUndone(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 2)
	all := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	majority := b.locks(core.WithReplicaAcks(core.AcksMajority, 2*time.Second))
	b.warm(all)
	r.Replicas[0].Stop()
	for name, lock := range map[string]core.Lock{
		"plain": all.Lock("k"), "fenced": all.FencedLock("f"), "multi": all.MultiLock("m1", "m2"),
	} {
		start := time.Now()
		_, hold, err := lock.Acquire(t.Context())
		if hold != nil {
			t.Errorf("%s: acquired", name)
		}
		wantShort(t, err, 2, 1)
		if took := time.Since(start); took < ackTime {
			t.Errorf("%s: failed after %s, before the replicas had their time", name, took)
		}
	}
	eventually(t, "what was given back is gone", func() bool { return b.Exists(t.Context(), "k", "f", "m1", "m2").Val() == 0 })
	_, hold := acquired(t, t.Context(), majority.Lock("k"))
	released(t, hold)
	_, hold = acquired(t, t.Context(), b.locks().Lock("k"))
	_, _, err := all.Lock("k").Acquire(t.Context(), core.WaitTime(0))
	if !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("of a lock that is taken: %v, want %v", err, core.ErrNotAcquired)
	}
	released(t, hold)

	r.Replicas[0].Continue()
	eventually(t, "the replica is back", func() bool {
		return all.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// Operations on counts and markers are acknowledged, too. One that too few replicas have is an error, and goes on in the
// background until they have it; it is executed once.
func TestReplicas_AcknowledgeCounts(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	locks := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	sem, latch, pool := locks.PlainSemaphore("sem"), locks.CountDownLatch("latch"), locks.Semaphore("pool", 0)
	replica := r.Replicas[0].Client()
	for name, set := range map[string]func() (bool, error){
		"sem":   func() (bool, error) { return sem.TrySetPermits(t.Context(), 5) },
		"latch": func() (bool, error) { return latch.TrySetCount(t.Context(), 2) },
		"pool":  func() (bool, error) { return pool.TrySetPermits(t.Context(), 5) },
	} {
		done, err := set()
		must(t, err)
		if got := replica.Exists(t.Context(), name).Val(); got != 1 || !done {
			t.Errorf("%s: set %t, and the replica has it: %d", name, done, got)
		}
	}
	_, err := locks.CountDownLatch("other").TrySetCount(t.Context(), 1)
	must(t, err)
	_, hold := acquired(t, t.Context(), locks.Lock("left"), core.LeaseTime(time.Hour))
	r.Replicas[0].Stop()
	var all sync.WaitGroup
	for name, change := range map[string]func() error{
		"Release":    func() error { return sem.Release(t.Context(), 1) },
		"CountDown":  func() error { return latch.CountDown(t.Context()) },
		"AddPermits": func() error { return pool.AddPermits(t.Context(), 1) },
	} {
		all.Go(func() {
			err := change()
			wantShort(t, err, 1, 0)
			if !strings.Contains(fmt.Sprint(err), "goes on in the background") {
				t.Errorf("%s: %v does not say that it goes on", name, err)
			}
		})
	}
	all.Wait()
	_, err = locks.CountDownLatch("other").Delete(t.Context())
	wantShort(t, err, 1, 0)
	wantShort(t, hold.Leave(t.Context(), time.Hour), 1, 0)
	r.Replicas[0].Continue()
	for name, want := range map[string]string{"sem": "6", "latch": "1", "pool": "6", "other": ""} {
		eventually(t, name+" on the replica", func() bool { return replica.Get(t.Context(), name).Val() == want })
		if got := b.Get(t.Context(), name).Val(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	must(t, sem.Release(t.Context(), 1))
}

// The question how many replicas there are is refused: what passes is waited out, and what does not is known at once.
func TestReplicas_QuestionIsRefused(t *testing.T) {
	t.Parallel()
	for says, passes := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                true,
		"NOPERM this user has no permissions to run the 'info' command": false,
	} {
		parallel(t, says, func(t *testing.T) {
			r := newRig(t)
			rdb := redis.NewClient(&redis.Options{Addr: r.proxy.Addr()})
			defer func() { _ = rdb.Close() }()
			locks := locksOn(t, rdb, core.WithReplicaAcks(core.AcksAll, ackTime), core.WithBackendTimeout(ackTime))
			refused := r.proxy.AnswerError(faultproxy.Command("info"), says)
			got := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
			if !passes {
				err := (<-got).err
				wantErr(t, err, core.ErrUnavailable)
				if !strings.Contains(fmt.Sprint(err), "redis refuses this until") {
					t.Errorf("%v does not say that it does not pass", err)
				}
				return
			}
			select {
			case o := <-got:
				t.Fatalf("not waited out: %v", o.err)
			case <-time.After(2 * ackTime): // refused for longer than the backend timeout
			}
			refused.Remove()
			released(t, r.mustHold(got).hold)
		})
	}
}

// The replica that is missing may be the next master: it goes on to count.
func TestReplicas_ThoseThatHaveGoneCount(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 2)
	all := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	two := b.locks(core.WithReplicaAcks(core.Acks(2), ackTime))
	majority := b.locks(core.WithReplicaAcks(core.AcksMajority, ackTime))
	for _, locks := range []*core.Client{all, two, majority} {
		eventually(t, "all acknowledge", func() bool {
			return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
		})
	}
	r.Replicas[0].Kill()
	eventually(t, "the replica has gone", func() bool {
		return strings.Contains(b.Info(t.Context(), "replication").Val(), "connected_slaves:1")
	})
	for range 2 {
		_, _, err := all.Lock("k").Acquire(t.Context())
		wantShort(t, err, 2, 1)
		if short, ok := errors.AsType[*core.ReplicationError](err); ok && short.Replicas != 2 && short.Replicas != 1 {
			t.Errorf("replicas at the last look: %d", short.Replicas)
		}
	}
	_, _, err := two.Lock("k").Acquire(t.Context())
	wantShort(t, err, 2, 1)
	_, hold := acquired(t, t.Context(), majority.Lock("other"), core.WaitTime(20*time.Second))
	released(t, hold)
	r.Replicas[1].Kill()
	_, _, err = majority.Lock("other").Acquire(t.Context())
	wantShort(t, err, 1, 0)
}

// More replicas than there are never acknowledge, and the error says why. Of none all is
// nobody.
func TestReplicas_MoreThanThereAre(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks := locksOn(t, srv.Client(), core.WithReplicaAcks(core.Acks(1), ackTime))
	_, _, err := locks.Lock("k").Acquire(t.Context())
	wantShort(t, err, 1, 0)
	if err != nil && !strings.Contains(err.Error(), "the master has only 0") {
		t.Errorf("the error does not say that there are none: %v", err)
	}
	if text := core.ErrorText(err); !strings.Contains(text, "the master has only 0") {
		t.Errorf("nor does its text for logs: %v", text)
	}
	for _, acks := range []core.Acks{core.AcksAll, core.AcksMajority} {
		_, hold := acquired(t, t.Context(), locksOn(t, srv.Client(), core.WithReplicaAcks(acks, ackTime)).Lock("all"))
		released(t, hold)
	}
}

// A replica that comes later counts within a second.
func TestReplicas_ThoseThatComeCount(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	locks := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	b.warm(locks)
	late := r.Add()
	late.Stop()
	var err error
	eventually(t, "the new replica counts", func() bool {
		_, hold, failed := locks.Lock("k").Acquire(t.Context())
		_ = hold.Release(t.Context())
		err = failed
		short, ok := errors.AsType[*core.ReplicationError](failed)
		return ok && short.Wanted == 2 && short.Acknowledged == 1 // the other one may be slow, too
	})
	wantShort(t, err, 2, 1)
}

// Renewals that too few replicas acknowledge are failures, and the hold is lost in time, also
// though the master has renewed it.
func TestReplicas_HoldIsLostWithoutThem(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	watchdog := unhurried(4500 * time.Millisecond)
	seen := &renewals{}
	locks := b.locks(core.WithWatchdog(watchdog), core.WithReplicaAcks(core.AcksAll, 100*time.Millisecond), core.WithObserver(seen.observer()))
	beside := b.locks(core.WithWatchdog(watchdog))
	ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
	other, otherHold := acquired(t, t.Context(), beside.Lock("other"))
	eventually(t, "a renewal", func() bool { return seen.good() > 0 })

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
	if took := time.Since(stopped); took > measured(watchdog+time.Second) {
		t.Errorf("lost after %s, want at the end of a lease of %s", took, watchdog)
	}
	wantEnded(t, ctx, core.ErrLost)
	if gone { // after the hold it is freed
		t.Error("the key has ended before the hold")
	}
	wantAlive(t, other)
	wantShort(t, seen.failure(), 1, 0)
	wantErr(t, hold.Release(t.Context()), core.ErrLost)
	released(t, otherHold)
}

// A hold goes on with its old end when too few have acknowledged a refresh or a re-entry.
func TestReplicas_RefreshAndReentryAreAcknowledged(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	locks := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	lock := locks.Lock("k")
	ctx, hold := acquired(t, t.Context(), lock, core.LeaseTime(time.Minute))
	r.Replicas[0].Stop()
	wantShort(t, hold.Refresh(ctx, time.Hour), 1, 0)
	if left := hold.Remaining(); left > time.Minute {
		t.Errorf("the hold lasts for %s", left)
	}
	_, again, err := lock.Acquire(ctx, core.LeaseTime(time.Hour))
	if again != nil {
		t.Error("entered again")
	}
	wantShort(t, err, 1, 0)
	eventually(t, "one hold in Redis", func() bool { return b.HGet(t.Context(), "k", hold.Field()).Val() == "1" })
	wantAlive(t, ctx)
	released(t, hold)
	b.wantGone("k")
}

// The lock is not handed on: every holder's own command is acknowledged.
func TestReplicas_NoHandOff(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	locks := b.locks(core.WithReplicaAcks(core.AcksAll, ackTime))
	_, hold := acquired(t, t.Context(), locks.Lock("k"))
	next := make(chan error, 1)
	go func() {
		_, hold, err := locks.Lock("k").Acquire(context.Background())
		_ = hold.Release(context.Background())
		next <- err
	}()
	waiters(t, locks, 1)
	r.Replicas[0].Stop()
	released(t, hold)
	wantShort(t, <-next, 1, 0)
	eventually(t, "the lock is free", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
}

// The wait time bounds the wait for replicas.
func TestReplicas_WithinTheWaitTime(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	locks := b.locks(core.WithReplicaAcks(core.AcksAll, 3*time.Second))
	b.warm(locks)
	r.Replicas[0].Stop()
	start := time.Now()
	_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
	wantErr(t, err, core.ErrUnavailable)
	wantSoon(t, "after %s", start, measured(2*time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, _, err = locks.Lock("k").Acquire(ctx)
	wantErr(t, err, context.Canceled)
	eventually(t, "nothing is left", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
}

// One round trip, on one connection: the script and what waits for the replicas travel
// together, and hooks see them so.
func TestReplicas_OnePipeline(t *testing.T) {
	t.Parallel()
	r := redisserver.StartReplicated(t, 1)
	rdb := r.Master.Client()
	seen := &pipelinesSeen{}
	rdb.AddHook(seen)
	locks := locksOn(t, rdb, core.WithReplicaAcks(core.AcksAll, 2*time.Second))
	_, hold := acquired(t, t.Context(), locks.Lock("warm"))
	released(t, hold)
	seen.forget()
	_, hold = acquired(t, t.Context(), locks.Lock("k"))
	wantSame(t, "hooks saw", seen.list(), "evalsha wait")
	released(t, hold)
}

// A WAIT that is refused, or has no answer, says nothing of the replicas: the lock is not acquired,
// and nothing is left behind.
func TestReplicas_WaitWithoutAnswer(t *testing.T) {
	t.Parallel()
	r, b := replicated(t, 1)
	proxy, rdb := faultproxy.Around(t, r.Master.Client())
	locks := locksOn(t, rdb, core.WithReplicaAcks(core.Acks(1), 2*time.Second))
	b.warm(locks)
	refused := proxy.AnswerError(faultproxy.Command("wait"), "NOPERM this user has no permissions to run the 'wait' command")
	_, _, err := locks.Lock("k").Acquire(t.Context())
	wantShort(t, err, 1, 0)
	if text := core.ErrorText(err); !strings.Contains(text, "NOPERM") {
		t.Errorf("the error does not say why: %s", text)
	}
	refused.Remove()
	// Of the two answers one is there when the connection ends. Where the end overtakes it, nothing
	// is known of the script either, and the next attempt has the lock.
	eventually(t, "an answer to the script alone", func() bool {
		proxy.DropReply(faultproxy.Once(faultproxy.Command("wait")))
		_, hold, err := locks.Lock("k").Acquire(t.Context())
		if err == nil {
			released(t, hold)
			return false
		}
		wantShort(t, err, 1, 0)
		return true
	})
	eventually(t, "nothing is left", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
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

// An acquisition with replica acks first asks Redis how many replicas it has. A Redis that does not answer this
// question is down, and that is known within the backend timeout.
func TestReplicas_RedisIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		proxy.BlackHole(true)
		locks := locksOn(t, rdb, core.WithReplicaAcks(core.AcksMajority, 100*time.Millisecond))
		for _, opts := range [][]core.AcquireOption{{core.WaitTime(0)}, {core.WaitTime(time.Minute)}} {
			o := <-acquiring(t.Context(), locks.Lock("k"), opts...)
			wantOnly(t, o.err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.took > core.DefaultBackendTimeout+100*time.Millisecond {
				t.Errorf("known after %s", o.took)
			}
		}
	})
}
