package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer is what a command waits for. First its caller waits for it alone, which costs
// nothing; when it turns out to be slow, for other things as well.
//
//	soon -> over  the pipeline has completed it
//	soon -> slow  it takes long, or its caller has no time to wait for it alone
//	slow -> over  the pipeline has completed it
//
// Who completes it does so once, and last; only its caller reads it afterwards. It is made
// slow only while it is in the queue of a pipeline, whose mutex is between that and its
// completion.
type answer struct {
	soon    sync.WaitGroup // counts one, until it is over or slow
	wake    chan struct{}  // of one that is slow
	isOver  atomic.Bool
	hung    atomic.Int32 // whether its caller knows that its connection hangs
	reply   any
	failure error

	future *redis.AutoFuture // instead of all that, of one that follows a redirection
}

// What the caller of an answer knows about its connection. Each step is taken once at most.
const (
	notHung  int32 = iota
	hungNews       // it hangs; the caller is to be interrupted
	hungTold       // the caller was: it may wait again, for longer
)

// prepare makes a command ready to be submitted, for a caller that has time until limit.
func (c *command) prepare(limit time.Time) {
	if limit.Sub(c.at) < mostPatience+2*patience {
		c.wake = make(chan struct{}, 1)
		return
	}
	c.soon.Add(1)
}

// follow has a command that was redirected wait for its future.
func (a *answer) follow(future redis.AutoFuture) { a.future = &future }

// complete gives the answer.
func (a *answer) complete(reply any, err error) {
	a.reply, a.failure = reply, err
	slow := a.wake != nil
	a.isOver.Store(true)
	if slow {
		wake(a.wake)
	} else {
		a.soon.Done()
	}
}

// slow has the caller wait for other things as well.
func (a *answer) slow() {
	if a.wake == nil {
		a.wake = make(chan struct{}, 1)
		a.soon.Done()
	}
}

// hangs lets the caller know, once, that its connection hangs.
func (a *answer) hangs() {
	if a.hung.CompareAndSwap(notHung, hungNews) {
		a.slow()
		wake(a.wake)
	}
}

// told reports whether there is news of a hang, which its caller knows from now on.
func (a *answer) told() bool { return a.hung.CompareAndSwap(hungNews, hungTold) }

// over reports whether there is an answer.
func (a *answer) over() bool { return a.isOver.Load() }

// awaitSoon waits until there is an answer, or it is slow; it reports which.
func (c *command) awaitSoon() bool {
	if c.future != nil {
		return false
	}
	c.soon.Wait()
	return c.over()
}

// errHangs is the cause of a wait on a connection that hangs while others are made.
var errHangs = errors.New("no answer on a connection that hangs")

// until waits for an answer until ctx ends, or the connection hangs, and reports
// whether there is one.
func (c *command) until(ctx context.Context) bool {
	if c.future != nil {
		err := c.future.WaitContext(ctx)
		c.failure = err
		return err == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err())
	}
	for !c.over() && c.hung.Load() != hungNews {
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
	if c.future == nil && c.failure == nil {
		c.Cmd.SetVal(c.reply)
	}
	return c.failure
}
