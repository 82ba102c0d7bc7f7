package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// operationTime is how long an operation on a count is sent again in the background, less what
// the reaper adds for one that lands late. Redis remembers it for longer (lua/once.lua).
const operationTime = 10 * time.Minute

// counted is what a semaphore or a latch counts.
type counted struct{ lock Lock }

// operate has an operation executed once, however often it has to be sent, also when ctx has
// ended. It reports whether that has changed the count. Without an answer it goes on in the
// background, unless Redis has refused it for good; its error says which.
func (c counted) operate(ctx context.Context, what string, n int) (changed bool, err error) {
	key, err := c.lock.admit()
	if err != nil {
		return false, err
	}
	defer c.lock.client.callers.exit()
	return c.execute(ctx, key, what, n)
}

func (c counted) change(ctx context.Context, what, method string, n int) error {
	changed, err := c.operate(ctx, what, n)
	if err == nil && !changed {
		return invalidf("%s(%d): there would be more than %d permits, or less than %d, which Redisson cannot read; nothing was changed",
			method, n, math.MaxInt32, math.MinInt32)
	}
	return err
}

// execute is operate for a caller that was admitted.
func (c counted) execute(ctx context.Context, key, what string, n int) (changed bool, err error) {
	locks, kind := c.lock.client, c.lock.kind
	if err := c.ofItsKind(key); err != nil {
		return false, err
	}
	op := locks.nextField(kind) + ":" + what + ":" + strconv.Itoa(n)
	found, fate, err := c.settle(context.WithoutCancel(ctx), key, op)
	switch {
	case err != nil && fate == wire.Unknown:
		locks.reaper.Abandon(kind, []string{key}, op, nil, operationTime)
		return false, fmt.Errorf("%w: %w", unavailable(err), errGoesOn)
	case err != nil:
		return false, fmt.Errorf("%w: %w", unavailable(err), errNotExecuted)
	}
	if fate == wire.Answered {
		locks.settled.note(key, op)
	}
	return !slices.ContainsFunc(found, func(settled string) bool {
		done, nothing := strings.CutPrefix(settled, redisstore.Nothing)
		return nothing && done == op
	}), nil
}

var (
	errGoesOn      = errors.New("the operation goes on in the background: do not repeat it")
	errNotExecuted = errors.New("the operation was not executed")
)

// ofItsKind refuses a name that this client has in use as another kind.
func (c counted) ofItsKind(key string) error {
	if err := c.lock.client.queues.Check(key, c.lock.kind.Family); err != nil {
		return notQueued(err, key, c.lock.kind)
	}
	return nil
}

// settle sends an operation until it is answered, or its time is over. The fate is that of all its
// sends: Unknown if one of them may still land, or if it was not executed and may be sent again;
// Answered with an error says that it never will be executed.
func (c counted) settle(ctx context.Context, key, op string) (found []string, fate wire.Fate, err error) {
	locks := c.lock.client
	ops := append(locks.settled.take(key), op)
	err = locks.store.Detect(ctx, locks.detectLimit(time.Now()))
	span := locks.operation(time.Now())
	r := resend{client: locks, key: key, span: span, pauser: pauses{}}
	send := func() (time.Time, bool, error) {
		call := locks.store.Settle(time.Now(), c.lock.kind, key, ops)
		answer, one, err := call.Wait(ctx, span.limit(locks, call.Sent))
		fate = max(fate, one)
		if err == nil {
			found, err = answer[0].Fields, answer[0].Err
		}
		if err == nil && len(found) == 0 {
			err = errNoCount
		}
		return call.Sent, err != nil && wire.Transient(err) && !errors.Is(err, errNoCount) && !errors.Is(err, wire.ErrSilent), err
	}
	if err == nil {
		err = r.run(ctx, send)
	}
	if err != nil && !wire.Rejects(err) && !errors.Is(err, errNoCount) {
		fate = wire.Unknown
	}
	return found, fate, err
}

var errNoCount = errors.New("the key is not a count")

func (c counted) counts(ctx context.Context) (redisstore.Counts, error) {
	counts, _, err := ask(ctx, c.lock, "the count", (*redisstore.Store).Count)
	return counts, err
}

// checkCount refuses a number that Redisson cannot have.
func checkCount(what string, n, least int) error {
	if n < least || n > math.MaxInt32 {
		return invalidf("%s(%d): want %d to %d", what, n, least, math.MaxInt32)
	}
	return nil
}

// pauses pause an operation that goes on whatever becomes of its caller.
type pauses struct{}

func (pauses) pause(ctx context.Context, pause time.Duration) error { return jitter.Sleep(ctx, pause) }

// settled are operations whose answers have come: the next one on the same key has Redis forget
// them. Those of keys beyond a bound are forgotten by their age.
type settled struct {
	mu   sync.Mutex
	keys map[string][]string
}

const (
	maxSettled     = 256 // of one key
	maxSettledKeys = 1024
	forgotten      = 8 // by one command
)

func (s *settled) note(key, op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = make(map[string][]string)
	}
	ops := s.keys[key]
	if len(ops) < maxSettled && (ops != nil || len(s.keys) < maxSettledKeys) {
		s.keys[key] = append(ops, "~"+op)
	}
}

// take gives some of those of a key, to be forgotten.
func (s *settled) take(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := s.keys[key]
	if len(ops) <= forgotten {
		delete(s.keys, key)
		return ops
	}
	rest := len(ops) - forgotten
	s.keys[key] = ops[:rest]
	return slices.Clone(ops[rest:])
}
