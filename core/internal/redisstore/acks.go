package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Acks says how many replicas have to acknowledge what gives a lock or prolongs it.
type Acks int

// The numbers that depend on how many replicas there are.
const (
	// NoAcks asks nobody.
	NoAcks Acks = 0
	// MajorityAcks are as many as make a majority of the servers together with the master.
	MajorityAcks Acks = -1
	// AllAcks are those of all replicas.
	AllAcks Acks = -2
)

// of is how many that are where a master has so many replicas.
func (a Acks) of(replicas int) int {
	switch a {
	case MajorityAcks:
		return (replicas + 1) / 2
	case AllAcks:
		return replicas
	default:
		return int(a)
	}
}

// depends reports whether the number of replicas has to be known.
func (a Acks) depends() bool { return a < 0 }

// Replication is what replicas have to do with calls that give a lock or prolong it.
type Replication struct {
	Acks    Acks
	Timeout time.Duration // how long they have for that
}

// ShortfallError says that a script was executed, and that too few replicas are known to
// have what it has written.
type ShortfallError struct {
	Wanted       int
	Acknowledged int
	Replicas     int   // that the master had at the last look; -1 if nobody knows
	Cause        error // why nobody knows how many have; nil if that is known
}

// Short reports whether an error is a shortfall.
func Short(err error) bool {
	_, short := errors.AsType[*ShortfallError](err)
	return short
}

// Error describes the shortfall; it names no key.
func (e *ShortfallError) Error() string {
	return fmt.Sprintf("%d of the %d wanted replicas have acknowledged in time", e.Acknowledged, e.Wanted)
}

// Unwrap gives the cause.
func (e *ShortfallError) Unwrap() error { return e.Cause }

// acknowledgement is what a script wants of the replicas, and what it got. It is written
// before the answer of the script is there.
type acknowledgement struct {
	slots  []int
	wanted int
	wait   time.Duration
	asking bool            // the slot is on its way to the node
	short  *ShortfallError // nil: it got it, or there is no answer
}

// again is the same wish of another sending.
func (a *acknowledgement) again() *acknowledgement {
	if a == nil {
		return nil
	}
	return &acknowledgement{slots: a.slots, wanted: a.wanted, wait: a.wait}
}

// waitCommand has Redis wait for replicas. It is harmless when it is executed twice.
func (a *acknowledgement) waitCommand(ctx context.Context) *answered {
	return newAnswered(ctx, "wait", a.wanted, max(a.wait.Milliseconds(), 1))
}

// answered is a command of which is known whether it was answered, also when another one
// of its pipeline was not: go-redis then puts that error on all.
type answered struct {
	*redis.Cmd

	over bool
	err  error
}

func newAnswered(ctx context.Context, args ...any) *answered {
	return &answered{Cmd: redis.NewCmd(ctx, args...)}
}

// SetErr keeps the error of its own reply.
func (c *answered) SetErr(err error) {
	if !c.over {
		c.over, c.err = fateOf(err) == Answered, err
	}
}

// Err is that of its own reply.
func (c *answered) Err() error { return c.err }

// NoRetry opts out of every retry of go-redis, for the whole pipeline.
func (*answered) NoRetry() bool { return true }
