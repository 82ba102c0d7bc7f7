package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer is what a command waits for.
//
//	waiting -> over  the pipeline has completed it
//
// Who completes it does so once, before the command is over; only its caller reads it,
// afterwards.
type answer struct {
	pipeline *pipeline
	isOver   atomic.Bool
	isSlow   bool        // its caller knows
	isHung   atomic.Bool // its caller is to know that its connection hangs
	told     bool        // that; the pipeline's mutex guards it
	reply    any
	failure  error
	wake     chan struct{}

	future redis.AutoFuture // instead of all that, of one that follows a redirection
}

// complete gives the answer.
func (a *answer) complete(reply any, err error) {
	a.reply, a.failure = reply, err
	a.isOver.Store(true)
	wake(a.wake)
}

// slow tells the caller that it waits for long.
func (a *answer) slow() { wake(a.wake) }

// hangs tells the caller, once, that its connection hangs.
func (a *answer) hangs() {
	if !a.told {
		a.told = true
		a.isHung.Store(true)
		wake(a.wake)
	}
}

// over reports whether there is an answer.
func (a *answer) over() bool { return a.isOver.Load() }

// awaitSoon waits until there is an answer, or it is slow; it reports which. A call without
// the time for that is slow from the start.
func (c *command) awaitSoon(limit time.Time) bool {
	if !c.isSlow && limit.Sub(c.at) >= c.pipeline.flow.patient()+2*patience {
		<-c.wake
	}
	c.isSlow = true
	return c.over()
}

// errHangs is the cause of a wait on a connection that hangs while others are made.
var errHangs = errors.New("no answer on a connection that hangs")

// until waits for an answer until ctx ends, or the connection hangs, and reports
// whether there is one.
func (c *command) until(ctx context.Context) bool {
	if c.route.redirected != nil {
		err := c.future.WaitContext(ctx)
		c.failure = err
		return err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err())
	}
	for !c.over() && !c.isHung.Load() {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return c.over()
		}
	}
	return c.over()
}

// settled takes the answer over into what hooks see.
func (c *command) settled() error {
	if c.route.redirected == nil && c.failure == nil {
		c.Cmd.SetVal(c.reply)
	}
	return c.failure
}
