package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/history"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// stranger is a client of Redisson beside the processes. Its threads take the lock foreign with the scripts of Redisson,
// and do not follow the rule of turns. No fault of the network affects it.
type stranger struct {
	rdb    *redis.Client
	shared registers
	now    func() time.Duration
	note   func(history.Event)
}

// strangerID is the client id, and the first part of its fields.
const strangerID = "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11"

// work runs a thread until stop is closed. Each acquisition has the id of another thread.
func (s stranger) work(random *rand.Rand, thread int, stop <-chan struct{}) {
	sub := s.rdb.Subscribe(context.Background(), locktest.ChannelOf(foreign))
	defer sub.Close()
	woken := sub.Channel()
	for n := thread; ; n += 1000 {
		s.hold(random, n, woken)
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.Int64N(int64(100 * time.Millisecond)))): // the pause between two operations
		}
	}
}

// hold acquires the lock, works, and releases it.
func (s stranger) hold(random *rand.Rand, thread int, woken <-chan *redis.Message) {
	lease := 200*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond))).Truncate(time.Millisecond)
	e := history.Event{
		Kind: history.Acquire, Goroutine: thread % 1000, Keys: []string{foreign}, Owner: fmt.Sprintf("java.%d", thread), Begin: s.now(),
		Ask: &history.Ask{Wait: history.NoWaitTime, Lease: lease},
	}
	field := fmt.Sprintf("%s:%d", strangerID, thread)
	sent, err := s.acquire(field, lease, s.now()+time.Second, woken)
	if e.End = s.now(); err != nil {
		e.Outcome, e.Note = outcome(err), err.Error()
		if e.Outcome == history.Other {
			e.Outcome = history.Unavailable
		}
		s.note(e)
		return
	}
	safe := sent + lease - lease/100 - 2*time.Millisecond
	h := &history.Hold{Field: field, Alive: e.End, Safe: safe}
	e.Outcome, e.Hold = history.Acquired, h
	s.use(random, &e, safe)
	s.release(h)
	s.note(e)
}

// acquire takes the lock like RLock.tryLock. It returns when the command was sent that took the lock.
func (s stranger) acquire(field string, lease, until time.Duration, woken <-chan *redis.Message) (sent time.Duration, err error) {
	for {
		sent = s.now()
		left, err := s.rdb.Eval(context.Background(), locktest.RedissonTryLock, []string{foreign}, lease.Milliseconds(), field).Int64()
		switch {
		case errors.Is(err, redis.Nil):
			return sent, nil
		case err != nil:
			return 0, err
		case s.now() >= until:
			return 0, errTaken
		}
		select {
		case <-woken:
		case <-time.After(min(time.Duration(left)*time.Millisecond, until-s.now())):
		}
	}
}

var errTaken = fmt.Errorf("redisson: %w", context.DeadlineExceeded)

// use changes the guarded value until the work is done or the lease ends.
func (s stranger) use(random *rand.Rand, e *history.Event, safe time.Duration) {
	h, end := e.Hold, s.now()+time.Duration(random.Int64N(int64(5*time.Millisecond)))
	if random.IntN(10) == 0 {
		end = safe // to the end of the lease
	}
	u := history.Update{Key: foreign, Read: s.shared.load(slot(foreign))}
	for now := s.now(); now < end && now < safe; now = s.now() {
		h.Alive = now
		time.Sleep(time.Millisecond) // the work
	}
	if s.now() < safe {
		u.Wrote = uint64(e.Begin)
		s.shared.store(slot(foreign), u.Wrote)
		if u.At = s.now(); u.At < safe {
			u.Certain, h.Alive = true, u.At
		}
		h.Updates = append(h.Updates, u)
	}
	if now := s.now(); now >= safe {
		h.Ended, h.Cause = now, history.Lost
	}
}

// release frees the lock like RLock.unlock.
func (s stranger) release(h *history.Hold) {
	r := &h.Release
	r.Begin = s.now()
	freed, err := s.rdb.Eval(context.Background(), locktest.RedissonUnlock, []string{foreign, locktest.ChannelOf(foreign)}, h.Field).Bool()
	switch r.End, r.Outcome = s.now(), history.OK; {
	case errors.Is(err, redis.Nil):
		r.Outcome = history.Lost
	case err != nil || !freed:
		r.Outcome, r.Note = history.Unavailable, text(err)
	}
}
