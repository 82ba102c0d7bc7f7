package interop_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
)

// loadTurn is the repeated work of a caller. Turns.java has the same in Java.
type loadTurn interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
}

// turns returns the turns of a caller, one for each key.
func (l load) turns(ctx context.Context, locks []*core.Client, caller int) ([]loadTurn, error) {
	all := make([]loadTurn, l.Keys)
	for i := range all {
		var err error
		if all[i], err = l.turn(ctx, locks, l.Key+":"+strconv.Itoa(i), caller); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (l load) turn(ctx context.Context, locks []*core.Client, key string, caller int) (loadTurn, error) {
	c := locks[0]
	switch l.Kind {
	case "multi":
		return &lockTurn{lock: c.MultiLock(key+":0", key+":1", key+":2")}, nil
	case "redlock":
		return &lockTurn{lock: core.Redlock(key, locks...)}, nil
	case "read beside write":
		return &readWriteTurn{read: lockTurn{lock: c.ReadLock(key)}, write: lockTurn{lock: c.WriteLock(key)}, turn: caller}, nil
	case "permit semaphore":
		return &lockTurn{lock: c.Semaphore(key, l.Permits).Lock}, nil
	case "semaphore":
		s := c.PlainSemaphore(key)
		_, err := s.TrySetPermits(ctx, l.Permits)
		return semaphoreTurn{s}, err
	case "latch":
		return &barrierTurn{locks: c, key: key, parties: l.Parties, end: time.UnixMilli(l.To)}, nil
	default:
		return &lockTurn{lock: kindOf(l.Kind).lock(c, key)}, nil
	}
}

type lockTurn struct {
	lock core.Lock
	hold *core.Hold
}

func (l *lockTurn) acquire(ctx context.Context) (err error) {
	_, l.hold, err = l.lock.Acquire(ctx)
	return err
}

func (l *lockTurn) release(ctx context.Context) error { return l.hold.Release(ctx) }

type semaphoreTurn struct{ core.PlainSemaphore }

func (s semaphoreTurn) acquire(ctx context.Context) error { return s.Acquire(ctx, 1) }
func (s semaphoreTurn) release(ctx context.Context) error { return s.Release(ctx, 1) }

// readWriteTurn reads, and writes in every eighth turn.
type readWriteTurn struct {
	read, write lockTurn
	turn        int // starts with the number of the caller, so that not all write at the same time
}

func (t *readWriteTurn) lock() *lockTurn {
	if t.turn%8 == 0 {
		return &t.write
	}
	return &t.read
}

func (t *readWriteTurn) acquire(ctx context.Context) error { return t.lock().acquire(ctx) }

func (t *readWriteTurn) release(ctx context.Context) error {
	err := t.lock().release(ctx)
	t.turn++
	return err
}

// barrierTurn lets all parties count a latch down, wait until it opens and continue with the next latch. After the end,
// no party waits: later parties open the latch for a party that started before the end.
type barrierTurn struct {
	locks   *core.Client
	key     string
	parties int
	end     time.Time
	round   int
}

func (b *barrierTurn) acquire(ctx context.Context) error {
	over := time.Now().After(b.end)
	latch := b.locks.CountDownLatch(fmt.Sprintf("%s:%d", b.key, b.round))
	b.round++
	if _, err := latch.TrySetCount(ctx, b.parties); err != nil {
		return err
	}
	if err := latch.CountDown(ctx); err != nil || over {
		return err
	}
	return latch.Await(ctx)
}

func (b *barrierTurn) release(context.Context) error { return nil }
