package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// direct is the way of a call that is alone: it goes out on a pooled connection in
// the caller's own goroutine, which spares the three changes of goroutine of an
// auto-pipeline. Nothing can interrupt it there, so it has little time. When that
// is over the call counts as unanswered, and for a while all calls travel on the
// lanes, where their callers can leave.
type direct struct {
	client   *redis.Client // nil in a Cluster, where no call has a time limit of its own
	horizon  horizon
	inFlight atomic.Int64
	resume   atomic.Int64 // Unix nanoseconds
	failures atomic.Int32 // how often it had to pause
}

// The time of a direct call, and for how long there is none after one that failed:
// twice as long each time, so that a Redis that is far away is soon left alone.
const (
	directTime   = 50 * time.Millisecond
	directPause  = time.Second
	longestPause = 10 // doublings
)

// errNotDirect is the cause of a direct call without an answer.
var errNotDirect = errors.New("no answer within " + directTime.String())

func newDirect(client *redis.Client) *direct {
	return &direct{client: client.WithTimeout(directTime), horizon: horizon{step: directTime}}
}

// enter counts a call, and says whether it is the only one.
func (d *direct) enter() bool { return d.inFlight.Add(1) == 1 }

// takes says whether a call that is alone may go directly: when it has the time.
func (d *direct) takes(now, limit time.Time) bool {
	return d.client != nil && now.UnixNano() >= d.resume.Load() && limit.Sub(now) >= 2*directTime
}

func (d *direct) exit() { d.inFlight.Add(-1) }

// process runs a call.
func (d *direct) process(now, limit time.Time, cmd *redis.Cmd) error {
	ctx, ok := d.horizon.before(now, limit)
	if !ok {
		return errNotDirect
	}
	err := d.client.Process(ctx, once{cmd})
	if err == nil || fateOf(err) == Answered {
		if d.failures.Load() != 0 {
			d.failures.Store(0)
		}
		return err
	}
	pause := directPause << min(d.failures.Add(1)-1, longestPause)
	d.resume.Store(time.Now().Add(pause).UnixNano())
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %v", errNotDirect, err) //nolint:errorlint // it would be taken for the caller's cancel
	}
	return err
}
