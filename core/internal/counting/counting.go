// Package counting executes operations on counts: the permits of a plain semaphore, and latches. Each operation is
// executed once, however often it is sent, because Redis remembers the unique field of the operation.
//
// This package runs the scripts of counts. It does not deal with waiting: package acquire takes permits and waits for
// latches, and its commands name the [Settled] operations. Package core calls this package.
package counting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// OperationTime is how long an operation is sent again in the background. The time that the reaper adds for an operation
// that is executed late is not included. Redis remembers operations for longer (lua/once.lua).
const OperationTime = 10 * time.Minute

// Config configures a Counter. All fields are required.
type Config struct {
	Redis     Redis
	Sender    *resend.Sender
	Reaper    Reaper
	NextField func(kind *redisstore.Kind) string // returns a field that was never used
}

// Redis runs the script that executes operations.
type Redis interface {
	Settle(now time.Time, k *redisstore.Kind, key string, ops []string) redisstore.Call[[]redisstore.Finding]
	Detect(ctx context.Context, limit time.Time) error
}

// Reaper sends operations without an answer again.
type Reaper interface {
	Abandon(kind *redisstore.Kind, keys []string, field string, call reaper.LateAnswer, lease time.Duration)
}

// Counter executes the operations of a client. It is safe for concurrent use.
type Counter struct {
	Config
	Settled
}

// New returns a Counter.
func New(cfg Config) *Counter { return &Counter{Config: cfg} }

// Execute executes an operation once, even if ctx is done. It reports whether the operation changed the count. If Redis
// does not answer, the operation continues in the background, unless Redis will never execute it. The error
// distinguishes the two cases.
func (c *Counter) Execute(ctx context.Context, kind *redisstore.Kind, key, what string, n int) (changed bool, err error) {
	op := c.NextField(kind) + ":" + what + ":" + strconv.Itoa(n)
	found, fate, err := c.send(context.WithoutCancel(ctx), kind, key, op)
	switch {
	case err != nil && fate == wire.Unknown:
		c.Reaper.Abandon(kind, []string{key}, op, nil, OperationTime)
		return false, &Error{failure.BecauseOf(err), errGoesOn}
	case err != nil:
		return false, &Error{failure.BecauseOf(err), errNotExecuted}
	}
	if fate == wire.Answered {
		c.Note(key, op)
	}
	return !slices.ContainsFunc(found, func(settled string) bool {
		done, nothing := strings.CutPrefix(settled, redisstore.Nothing)
		return nothing && done == op
	}), nil
}

// Error contains the reason for which an operation failed, and its fate.
type Error struct {
	Cause error
	Fate  error
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %v", e.Cause, e.Fate) }

// Unwrap returns the cause and the fate.
func (e *Error) Unwrap() []error { return []error{e.Cause, e.Fate} }

const (
	errGoesOn      = failure.Text("the operation goes on in the background: do not repeat it")
	errNotExecuted = failure.Text("the operation was not executed")
)

var errNoCount = errors.New("the key is not a count")

// send sends an operation until it is answered or its time limit has passed. The fate covers all sends together. It is
// Unknown if Redis may still execute one of them, or if Redis executed none and the operation may be sent again. It is
// Answered with an error if Redis will never execute the operation.
func (c *Counter) send(ctx context.Context, kind *redisstore.Kind, key, op string) (found []string, fate wire.Fate, err error) {
	ops := append(c.Take(key), op)
	err = c.Redis.Detect(ctx, c.Sender.DetectLimit(time.Now()))
	span := c.Sender.Operation(time.Now())
	loop := resend.Loop{Sender: c.Sender, Key: key, Span: span, Pauser: resend.Sleeper{}}
	send := func() (time.Time, bool, error) {
		call := c.Redis.Settle(time.Now(), kind, key, ops)
		answer, one, err := call.Wait(ctx, span.Limit(c.Sender, call.Sent))
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
		err = loop.Run(ctx, send)
	}
	if err != nil && !wire.Rejects(err) && !errors.Is(err, errNoCount) {
		fate = wire.Unknown
	}
	return found, fate, err
}

// Settled contains operations that were answered. The next command on the same key makes Redis forget these operations.
// If there are too many, Settled drops the later ones, which Redis forgets after some time. It is safe for concurrent
// use.
type Settled struct {
	mu   sync.Mutex
	keys map[string][]string
}

const (
	maxPerKey   = 256
	maxKeys     = 1024
	mostPerSend = 8 // operations named by one command
)

// Note adds an operation that was answered.
func (s *Settled) Note(key, op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = make(map[string][]string)
	}
	ops := s.keys[key]
	if len(ops) < maxPerKey && (ops != nil || len(s.keys) < maxKeys) {
		s.keys[key] = append(ops, "~"+op)
	}
}

// Take removes and returns some operations of a key, for the next command to name.
func (s *Settled) Take(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ops := s.keys[key]
	if len(ops) <= mostPerSend {
		delete(s.keys, key)
		return ops
	}
	rest := len(ops) - mostPerSend
	s.keys[key] = ops[:rest]
	return slices.Clone(ops[rest:])
}
