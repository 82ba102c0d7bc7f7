package turns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// contest is a number of processes whose callers take one lock again and again. It runs in a bubble, where every
// answer and every message takes a random time.
type contest struct {
	processes []rival
	hold      time.Duration
	lasts     time.Duration
	think     time.Duration // pause of every caller after its turn
}

// rival is one of the processes.
type rival struct {
	callers int
	java    bool // a Redisson client
	barges  bool // its threads attempt once before they join the waiters
}

// outcomes contains the turns and the waits of the callers of a process.
type outcomes struct {
	turns []float64
	waits []time.Duration
}

func (s *outcomes) all() (n float64) {
	for _, turns := range s.turns {
		n += turns
	}
	return n
}

func (c contest) play(t *testing.T, b *locktest.Redis) (all []*outcomes, sent float64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var scriptsOf []*faultproxy.Rule
	for i, r := range c.processes {
		proxy, rdb := faultproxy.Around(t, b.Client)
		scriptsOf = append(scriptsOf, proxy.Watch(locktest.Scripts))
		locktest.Wobble(proxy, uint64(i))
		s := &outcomes{turns: make([]float64, r.callers)}
		all = append(all, s)
		lock := c.lockers(t, r, rdb)
		var mu sync.Mutex
		for caller := range r.callers {
			callers.Go(func() {
				for ctx.Err() == nil {
					start := time.Now()
					unlock, err := lock(ctx, caller)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					s.turns[caller]++
					s.waits = append(s.waits, time.Since(start))
					mu.Unlock()
					<-time.NewTimer(c.hold).C
					unlock()
					if c.think > 0 {
						<-time.NewTimer(c.think).C
					}
				}
			})
		}
	}
	locktest.Pass(c.lasts)
	for _, rule := range scriptsOf {
		sent += float64(rule.Hits())
	}
	stop()
	callers.Wait()
	return all, sent
}

func (c contest) lockers(t *testing.T, r rival, rdb *redis.Client) func(ctx context.Context, caller int) (func(), error) {
	t.Helper()
	if r.java {
		j := &threads{rdb: rdb, id: fmt.Sprintf("5a1f0a0e-9f0b-4a3e-8d33-%012x", rand.Uint64()>>16), barges: r.barges}
		return j.lock
	}
	locks := locktest.NewClient(t, rdb, locktest.Patient)
	return func(ctx context.Context, _ int) (func(), error) {
		_, hold, err := locks.Lock("k").Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return func() { _ = hold.Release(context.Background()) }, nil
	}
}

// threads are the threads of one Redisson client. They share a subscription while any of them waits. A message makes
// one of them attempt, 1.5 ms later.
type threads struct {
	rdb    *redis.Client
	id     string
	barges bool

	mu      sync.Mutex
	waiting []chan struct{}
	sub     *redis.PubSub
	users   int
	reader  sync.WaitGroup
}

const wakesUpIn = 1500 * time.Microsecond

func (j *threads) try(ctx context.Context, thread int) (bool, error) {
	err := j.rdb.Eval(ctx, locktest.RedissonTryLock, []string{"k"}, 30_000, fmt.Sprintf("%s:%d", j.id, 70+thread)).Err()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	return false, err
}

func (j *threads) lock(ctx context.Context, thread int) (func(), error) {
	free := func() {
		const script = `redis.call('del', KEYS[1]); redis.call('publish', ARGV[1], '0'); return 1`
		_ = j.rdb.Eval(context.Background(), script, []string{"k"}, locktest.ChannelOf("k")).Err()
	}
	j.mu.Lock()
	first := j.barges || len(j.waiting) == 0
	j.mu.Unlock()
	if first {
		if taken, err := j.try(ctx, thread); taken || err != nil {
			return free, err
		}
	}
	woken := j.enter(ctx)
	defer func() { j.leave(woken) }()
	if first { // the message may have come before the subscription
		if taken, err := j.try(ctx, thread); taken || err != nil {
			return free, err
		}
	}
	for {
		select {
		case <-woken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		<-time.NewTimer(wakesUpIn).C
		if taken, err := j.try(ctx, thread); taken || err != nil {
			return free, err
		}
		woken = j.again()
	}
}

func (j *threads) enter(ctx context.Context) chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.users++; j.users == 1 {
		j.sub = j.rdb.Subscribe(ctx, locktest.ChannelOf("k"))
		sub := j.sub
		j.reader.Go(func() { j.read(sub) })
	}
	woken := make(chan struct{})
	j.waiting = append(j.waiting, woken)
	return woken
}

func (j *threads) again() chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	woken := make(chan struct{})
	j.waiting = append(j.waiting, woken)
	return woken
}

func (j *threads) leave(woken chan struct{}) {
	j.mu.Lock()
	j.waiting = slices.DeleteFunc(j.waiting, func(c chan struct{}) bool { return c == woken })
	if j.users--; j.users > 0 {
		j.mu.Unlock()
		return
	}
	sub := j.sub
	j.waiting = nil
	j.mu.Unlock()
	_ = sub.Close()
	j.reader.Wait()
}

func (j *threads) read(sub *redis.PubSub) {
	for {
		m, err := sub.Receive(context.Background())
		if err != nil {
			return
		}
		if _, pong := m.(*redis.Pong); !pong { // a confirmation also makes a thread attempt
			j.mu.Lock()
			if len(j.waiting) > 0 {
				close(j.waiting[0])
				j.waiting = j.waiting[1:]
			}
			j.mu.Unlock()
		}
	}
}

func ours(callers ...int) (all []rival) {
	for _, n := range callers {
		all = append(all, rival{callers: n})
	}
	return all
}
