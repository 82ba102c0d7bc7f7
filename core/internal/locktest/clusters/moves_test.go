package clusters_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// movingLock is a lock of some kind whose slot moves to another node in steps. The test gives the lock back in one of
// the steps.
type movingLock struct {
	locktest.Kind

	t        *testing.T
	key      string
	backward bool // the last key moves first
	stage    stage
	has      locktest.Taken
	move     *redisserver.Move
	given    atomic.Bool
	returned chan error
	got      chan error // the result of its waiter
}

// stage is the progress of the move.
type stage int

const (
	open   stage = iota // nothing has moved yet
	halved              // half of the keys have moved
	there               // all keys have moved, and the slot has not
	over
)

func (s stage) String() string { return [...]string{"open", "halved", "there", "over"}[s] }

func (m *movingLock) String() string { return fmt.Sprintf("%s, given back when %s", m.key, m.stage) }

// movingLocks returns locks of all kinds that are given back in each stage. Their names have braces or not, and their
// keys move in both orders. All move to the same node.
func movingLocks(t *testing.T, cluster *redisserver.Cluster) (list []*movingLock) {
	t.Helper()
	for _, kind := range locktest.KindsOnOneServer() {
		for stage := open; stage <= over; stage++ {
			for _, backward := range []bool{false, true} {
				key := fmt.Sprintf("%s-%s-%t", kind.Name, stage, backward)
				for cluster.Master(key) == cluster.Masters[2] {
					key += "+"
				}
				if backward && !kind.IsUntagged {
					key = "order:{" + key + "}:lock"
				}
				list = append(list, &movingLock{
					Kind: kind, t: t, key: key, backward: backward, stage: stage,
					returned: make(chan error, 1), got: make(chan error, 1),
				})
			}
		}
	}
	return list
}

func (m *movingLock) take(locks *core.Client) {
	m.t.Helper()
	var err error
	if m.has, err = m.Take(m.t.Context(), locks, m.key); err != nil {
		m.t.Fatalf("%s: %v", m, err)
	}
}

// wait starts a waiter, which gives the lock back at once.
func (m *movingLock) wait(locks *core.Client) {
	go func() { m.got <- m.waited(locks) }()
}

func (m *movingLock) waited(locks *core.Client) error {
	has, err := m.Want(m.t.Context(), locks, m.key)
	if err != nil {
		return err
	}
	if !m.given.Load() {
		m.t.Errorf("%s: two clients have the lock", m)
	}
	return unlessAway(has.GiveBack())
}

func (m *movingLock) await(what string, result chan error) {
	m.t.Helper()
	select {
	case err := <-result:
		if err != nil {
			m.t.Errorf("%s: %s: %v", m, what, err)
		}
	case <-time.After(locktest.HangTimeout):
		m.t.Fatalf("%s: %s: never", m, what)
	}
}

// proceed moves the slot to a stage.
func (m *movingLock) proceed(to stage, cluster *redisserver.Cluster) {
	m.t.Helper()
	switch to {
	case open:
		m.move = cluster.BeginMove(m.key)
	case halved:
		keys := m.move.Left()
		slices.Sort(keys)
		if m.backward {
			slices.Reverse(keys)
		}
		m.move.Keys(keys[:(len(keys)+1)/2]...)
	case there:
		m.move.Keys(m.move.Left()...)
	case over:
		m.move.End()
	}
}

// giveBack gives the lock back in its stage. If this needs several keys and half of them have moved, the call does not
// return until the keys are on one node again.
func (m *movingLock) giveBack(now stage) {
	m.t.Helper()
	if m.stage != now {
		return
	}
	m.given.Store(true)
	go func() { m.returned <- m.has.GiveBack() }()
	if !m.GivesSeveral || now == open {
		m.await("giving back", m.returned)
	}
}

// left returns the keys that must be gone when the lock is free. It omits keys that may stay.
func (m *movingLock) left() (keys []string) {
	count := m.move.To.Client().Get(m.t.Context(), m.key).Val()
	for _, key := range append(m.move.Arrived(), m.move.Left()...) {
		stays := strings.HasPrefix(key, "redisson_lock_token:") || strings.HasSuffix(key, ":interlock_ops") || key == m.key && count == "1"
		if !stays {
			keys = append(keys, key)
		}
	}
	return keys
}

// wantNothingLeft waits until no key is left, or until end. All locks of a test have the same end, so that the test
// reports all remaining keys before it runs out of time.
func (m *movingLock) wantNothingLeft(end time.Time) {
	m.t.Helper()
	left := m.left()
	for ; len(left) > 0 && time.Now().Before(end); left = m.left() {
		time.Sleep(5 * time.Millisecond) // a poll with a bound
	}
	if len(left) > 0 {
		m.t.Errorf("%s: left behind: %q", m, left)
	}
}

// tryAgains returns how often the nodes have answered TRYAGAIN.
func tryAgains(t *testing.T, cluster *redisserver.Cluster) (n string) {
	t.Helper()
	for _, node := range cluster.Masters {
		info, err := node.Client().Info(t.Context(), "errorstats").Result()
		locktest.Must(t, err)
		for line := range strings.Lines(info) {
			if strings.HasPrefix(line, "errorstat_TRYAGAIN") {
				n += line
			}
		}
	}
	return n
}

// steady is a backend timeout that is longer than any step. A release whose keys are on two nodes is sent again until
// they are on one node.
var steady = core.WithBackendTimeout(time.Minute)

// renewedFor returns the lease of locks that move: longer than a step takes on this machine.
func renewedFor() time.Duration {
	if locktest.IsQuiet() {
		return 5 * time.Second
	}
	return 20 * time.Second
}

// A lock of any kind is held while its slot moves to another node, key by key. It can be renewed and given back in
// every step. Commands about one key never get TRYAGAIN.
func TestCluster_HeldWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	seen := &renewedKeys{}
	locks := locktest.NewClient(t, cluster.Client(), steady, core.WithWatchdog(renewedFor()), core.WithObserver(seen.observer()))
	// Locks that cannot be renewed while their keys are on two nodes come last in that step and first in the next
	// step, because on a slow machine all others take longer than a lease.
	list := movingLocks(t, cluster)
	slices.SortStableFunc(list, func(a, b *movingLock) int {
		switch {
		case a.RenewsSeveral == b.RenewsSeveral:
			return 0
		case a.RenewsSeveral:
			return -1
		default:
			return 1
		}
	})
	for _, m := range list {
		m.take(locks)
	}
	for now := open; now <= over; now++ {
		for _, m := range list {
			if now != halved || !m.RenewsSeveral {
				m.proceed(now, cluster)
			}
		}
		for _, m := range list {
			if m.GivesSeveral && m.stage == now-1 && m.stage != open {
				m.await("giving back", m.returned)
			}
		}
		before := tryAgains(t, cluster)
		seen.each(t, list, now)
		for _, m := range list {
			if now == halved && m.RenewsSeveral {
				m.proceed(now, cluster)
			}
		}
		for _, m := range list {
			if m.GivesSeveral {
				continue
			}
			if m.stage == now && (now != halved || !m.RenewsSeveral) {
				locktest.Must(t, m.has.Hold.Refresh(t.Context(), time.Minute))
			}
			m.giveBack(now)
		}
		if after := tryAgains(t, cluster); after != before {
			t.Errorf("%s: the nodes have answered TRYAGAIN %s times, want %s as before", now, after, before)
		}
		for _, m := range list {
			if m.GivesSeveral {
				m.giveBack(now)
			}
		}
	}
	end := time.Now().Add(locktest.HangTimeout)
	for _, m := range list {
		if m.GivesSeveral && m.stage == over {
			m.await("giving back", m.returned)
		}
		m.wantNothingLeft(end)
	}
}

// renewedKeys counts the renewals of each key.
type renewedKeys struct {
	mu   sync.Mutex
	of   map[string]int
	last map[string]error // the last failure
}

func (r *renewedKeys) observer() *core.Observer { return &core.Observer{Renewal: r.observeRenewal} }

func (r *renewedKeys) observeRenewal(_ context.Context, renewal core.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of, r.last = make(map[string]int), make(map[string]error)
	}
	if renewal.Err == nil {
		r.of[renewal.Key]++
	} else {
		r.last[renewal.Key] = renewal.Err
	}
}

func (r *renewedKeys) failure(key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[key]
}

func (r *renewedKeys) count(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key]
}

// each waits until each held lock has been renewed once more.
func (r *renewedKeys) each(t *testing.T, list []*movingLock, now stage) {
	t.Helper()
	before := make(map[*movingLock]int)
	for _, m := range list {
		if m.has.Hold != nil && !m.given.Load() && (now != halved || !m.RenewsSeveral) {
			before[m] = r.count(m.has.Hold.Key())
		}
	}
	for m, n := range before {
		locktest.Eventually(t, fmt.Sprintf("%s: a renewal while %s", m, now), func() bool { return r.count(m.has.Hold.Key()) > n || m.has.Ctx.Err() != nil })
		if m.has.Ctx.Err() != nil {
			t.Errorf("%s: lost while %s: %v; a renewal: %v", m, now, context.Cause(m.has.Ctx), r.failure(m.has.Hold.Key()))
		}
	}
}

// A waiter for a lock of any kind waits while the slot moves. If the lock has one key, the waiter gets the lock at once
// after the release, otherwise when the slot has moved. From then on, messages come from the new owner.
func TestCluster_WaitedForWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	holders, waiting := locktest.NewClient(t, cluster.Client(), steady), locktest.NewClient(t, cluster.Client(), steady)
	list := movingLocks(t, cluster)
	for _, m := range list {
		m.take(holders)
		m.wait(waiting)
	}
	locktest.AwaitWaiters(t, waiting, len(list))
	for now := open; now <= over; now++ {
		for _, m := range list {
			m.proceed(now, cluster)
			if now == over && m.stage == over && cluster.Sharded() {
				m.wantListener()
			}
		}
		for _, m := range list {
			m.giveBack(now)
		}
		for _, m := range list {
			if m.stage == now && !m.TakesSeveral && !m.GivesSeveral {
				m.await("the acquisition", m.got)
			}
		}
	}
	end := time.Now().Add(locktest.HangTimeout)
	for _, m := range list {
		if m.GivesSeveral && m.stage != open {
			m.await("giving back", m.returned)
		}
		if m.TakesSeveral || m.GivesSeveral {
			m.await("the acquisition", m.got)
		}
		m.wantNothingLeft(end)
	}
}

// wantListener waits until a client listens at the new owner.
func (m *movingLock) wantListener() {
	m.t.Helper()
	if m.Channel == nil {
		return
	}
	to := m.move.To.Client()
	locktest.Eventually(m.t, m.String()+": a listener at the new owner", func() bool {
		return len(to.PubSubShardChannels(m.t.Context(), m.Channel(m.key)+"*").Val()) > 0
	})
}

// While the slot of a lock moves, two auxiliary keys may stay on the old node: the mark of a waiting writer, and the
// note that the head of a fair queue was notified. These keys block no client when the other keys follow.
func TestCluster_KeysThatStayBehind(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.NewClient(t, cluster.Client(), locktest.Patient)
	names := locktest.KeysOn(cluster, cluster.Masters[0], 2) // both move to the same node
	read, key := names[0], names[1]
	_, hold := locktest.MustAcquire(t, t.Context(), locks.ReadLock(read), core.LeaseTime(time.Minute))
	wait := func(d time.Duration) {
		_, _, err := locks.WriteLock(read).Acquire(t.Context(), core.WaitTime(d))
		locktest.WantErr(t, err, core.ErrNotAcquired)
	}
	move := cluster.PlanMove(read)
	mark := locktest.Tagged(read) + ":interlock_writer"
	locktest.Must(t, move.From.Client().Set(t.Context(), mark, "0 stranger", time.Minute).Err())
	move.Open()
	move.Keys(read, locktest.ReaderTimeoutOf(read, hold.Field(), "1"))
	wait(50 * time.Millisecond)
	move.Keys(mark)
	move.End()
	locktest.MustRelease(t, hold)

	_, hold = locktest.MustAcquire(t, t.Context(), locks.FairLock(key), core.LeaseTime(time.Minute))
	move = cluster.PlanMove(key)
	from := move.From.Client()
	waiting := locktest.GoAcquire(t.Context(), locks.FairLock(key))
	locktest.Eventually(t, "a waiter in the queue", func() bool { return from.LLen(t.Context(), locktest.FairQueue(key)).Val() == 1 })
	note := locktest.Tagged(key) + ":interlock_seen"
	locktest.Must(t, from.HSet(t.Context(), note, "stranger", 1).Err())
	locktest.Must(t, from.PExpire(t.Context(), note, time.Minute).Err())
	move.Open()
	move.Keys(key, locktest.FairQueue(key), locktest.FairDeadlines(key))
	locktest.MustRelease(t, hold)
	move.Keys(note)
	move.End()
	locktest.MustRelease(t, locktest.Got(t, waiting).Hold)
}

// A slot moves to another node. Every operation finds a key that has moved already, and finds the slot after the move.
func TestCluster_SlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	key := "moving"
	locks := locktest.ClusterClient(t, cluster)
	locktest.Must(t, locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil })) // the client knows the slots
	move := cluster.BeginMove(key)
	lifeOfALock(t, locks, key)

	move.End()
	lifeOfALock(t, locks, key)
	if n := len(move.Arrived()); n != 0 {
		t.Error("the key is left on the node that has taken over")
	}
}

// lifeOfALock performs every operation on a held lock.
func lifeOfALock(t *testing.T, locks *core.Client, key string) {
	t.Helper()
	lock := locks.Lock(key)
	ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, inner := locktest.MustAcquire(t, ctx, lock)
	locktest.MustRelease(t, inner)
	locktest.Must(t, hold.Refresh(t.Context(), 2*time.Minute))
	state, err := lock.State(t.Context())
	locktest.Must(t, err)
	if state.Holders[hold.Field()] != 1 || state.TTL < time.Minute {
		t.Errorf("got %+v, want a hold for two minutes", state)
	}
	_, _, err = locks.Lock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.MustRelease(t, hold)
}

// A slot moves while readers have the lock. Renewals and releases are not refused, even if a timeout key has moved
// first. During the move, a reader without a timeout key does not count as dead.
func TestCluster_ReadersWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	const key = "{moving}map"
	locks := locktest.ClusterClient(t, cluster)
	other := locktest.ClusterClient(t, cluster)
	lock := locks.ReadLock(key)
	ctx, one := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, two := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, three := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))

	move := cluster.BeginMove(key)
	locktest.Must(t, one.Refresh(t.Context(), 2*time.Minute)) // all keys are still on the old node
	move.Keys(locktest.ReaderTimeoutOf(key, two.Field(), "1"))
	locktest.MustRelease(t, three) // a reader whose key has moved first is not dead
	for _, l := range []core.Lock{other.WriteLock(key), other.ReadLock(key)} {
		_, _, err := l.Acquire(t.Context(), core.WaitTime(100*time.Millisecond))
		if err == nil {
			t.Errorf("a caller acquired the lock while its slot moves")
		}
	}
	move.Keys(key, locktest.ReaderTimeoutOf(key, one.Field(), "1"))
	_, _, err := other.WriteLock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	_, again := locktest.MustAcquire(t, ctx, lock)
	locktest.MustRelease(t, again)
	locktest.Must(t, two.Refresh(t.Context(), 3*time.Minute))
	locktest.MustRelease(t, two)
	move.End()
	writing := locktest.GoAcquire(t.Context(), other.WriteLock(key))
	locktest.AwaitWaiters(t, other, 1)
	locktest.MustRelease(t, one)
	locktest.MustRelease(t, locktest.Got(t, writing).Hold)
	locktest.Must(t, locks.ReadLock(key).Do(context.Background(), func(context.Context) error { return nil }))
	if keys := append(move.Left(), move.Arrived()...); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// While the lock and the timeout key of a reader are on different nodes, the TTL of the timeout key is unknown. A
// command that extends the lease waits until it can extend this key, too.
func TestCluster_LeaseOfAReaderWhoseKeysAreApart(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.ClusterClient(t, cluster)
	for name, longer := range map[string]func(ctx context.Context, hold *core.Hold, lock core.Lock) error{
		"refresh": func(_ context.Context, hold *core.Hold, _ core.Lock) error {
			return hold.Refresh(context.Background(), time.Minute)
		},
		"re-entry": func(ctx context.Context, _ *core.Hold, lock core.Lock) error {
			_, inner, err := lock.Acquire(ctx, core.LeaseTime(time.Minute))
			if err != nil {
				return err
			}
			return inner.Release(context.Background())
		},
	} {
		lock := locks.ReadLock(name)
		ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(20*time.Second))
		move := cluster.BeginMove(name)
		move.Keys(name)
		done := locktest.Go(func() error { return longer(ctx, hold, lock) })
		before := tryAgains(t, cluster)
		locktest.Eventually(t, "an answer", func() bool { return len(done) > 0 || tryAgains(t, cluster) != before })
		move.End()
		locktest.Must(t, <-done)
		ttl := move.To.Client().PTTL(t.Context(), locktest.ReaderTimeoutOf(name, hold.Field(), "1")).Val()
		if left := hold.Remaining(); ttl < left {
			t.Errorf("%s: a lease of %s, of which others see %s", name, left, ttl)
		}
		locktest.MustRelease(t, hold)
	}
}

// The lease of a writer is kept in the lock's hash. It counts while the slot moves, even if the writer also reads and
// its timeout key as a reader is still on the old node.
func TestCluster_WriterThatReadsWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	const key = "{moving}map"
	locks, other := locktest.ClusterClient(t, cluster), locktest.ClusterClient(t, cluster)
	writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock(key), core.LeaseTime(time.Minute))
	_, r := locktest.MustAcquire(t, writing, locks.ReadLock(key), core.LeaseTime(time.Hour))
	_, r = r.Handover()
	move := cluster.BeginMove(key)
	move.Keys(key)
	locktest.Must(t, w.Refresh(t.Context(), 2*time.Minute))
	_, _, err := other.ReadLock(key).Acquire(t.Context(), core.WaitTime(0))
	if e := locktest.NotAcquired(t, err); e.BlockedBy != w.Field() || e.RetryAfter > 2*time.Minute {
		t.Errorf("holder: %+v, want the writer with the rest of its lease", e)
	}
	locktest.MustRelease(t, w)
	move.Keys(locktest.ReaderTimeoutOf(key, r.Field(), "1"))
	move.End()
	_, beside := locktest.MustAcquire(t, t.Context(), other.ReadLock(key), core.WaitTime(time.Minute))
	locktest.MustRelease(t, beside)
	locktest.MustRelease(t, r)
	if keys := append(move.Left(), move.Arrived()...); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}
