package acquire

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// manner is how the callers of a kind of lock wait.
type manner struct {
	lane       func(a *attempt) string                                                 // the lane of its waiter in the queue; "": it waits behind the others
	field      func(a *attempt) string                                                 // the field of the next command
	unanswered func(a *attempt, field string, call *redisstore.Call[redisstore.Grant]) // leaves a field without an answer to the reaper
	sleep      func(a *attempt, todo queue.Step) time.Duration                         // how long the waiter sleeps if nothing wakes it
	listens    bool                                                                    // the kind has messages
	announces  bool                                                                    // its attempts keep out others that would share the lock
}

// manners has a row for each [redisstore.Waiting].
var manners = [...]manner{ //nolint:gochecknoglobals // a table that is never changed
	redisstore.InLine:    {lane: noLane, field: newField, unanswered: (*attempt).abandon, sleep: sleepFor(pollInterval), listens: true},
	redisstore.Announced: {lane: noLane, field: newField, unanswered: (*attempt).abandon, sleep: sleepFor(announceInterval), listens: true, announces: true},
	redisstore.Spinning:  {lane: noLane, field: newField, unanswered: (*attempt).abandon, sleep: (*attempt).spin},
	redisstore.Abreast:   {lane: newField, field: newField, unanswered: (*attempt).abandon, sleep: sleepFor(pollInterval), listens: true},
	redisstore.InRedis: {
		lane: (*attempt).placeLane, field: (*attempt).placeField, unanswered: (*attempt).keepGhost, sleep: (*attempt).sleepInPlace, listens: true,
	},
}

func mannerOf(kind *redisstore.Kind) *manner { return &manners[kind.Waits] }

const (
	// announceInterval is how long a waiter sleeps at most whose attempts announce it: 500 ms. The mark that an attempt
	// leaves in Redis lasts beyond the next attempt, for which the rest of its time is left.
	announceInterval = 5 * redisstore.LongestMark / 9
	// memberInterval is for how long a waiter at one server of a Redlock lets others pass there, before the other
	// servers are asked again: so they are asked at least once in a poll interval.
	memberInterval = pollInterval / 2
	// spinPause is the first pause of a waiter that spins. The next ones are twice as long each, up to
	// [queue.SilentPoll], so that it has a turn now and then beside a busy process, too.
	spinPause = time.Millisecond
)

func noLane(*attempt) string { return "" }

func newField(a *attempt) string { return a.in.NextField(a.wish.Kind) + a.wish.Operation }

// abandon leaves a field to the reaper at once.
func (a *attempt) abandon(field string, call *redisstore.Call[redisstore.Grant]) {
	call.Settle()
	a.in.Graves.Abandon(a.wish.Kind, a.wanted(), field, lateAnswer{call: call}, a.wish.Lease)
}

// sleepFor returns a sleep with an interval, or with the interval of a poll while no messages arrive.
func sleepFor(interval time.Duration) func(*attempt, queue.Step) time.Duration {
	return func(_ *attempt, todo queue.Step) time.Duration {
		if todo.Silent {
			return atMost(todo.Sleep, jitter.Of(queue.SilentPoll))
		}
		return atMost(todo.Sleep, jitter.Of(interval))
	}
}

// spin returns the sleep of a waiter without messages: the head attempts again soon, and then less and less often.
func (a *attempt) spin(todo queue.Step) time.Duration {
	if !todo.Head {
		return sleepFor(pollInterval)(a, todo)
	}
	a.spins++
	return atMost(todo.Sleep, jitter.Of(min(spinPause<<min(a.spins-1, 10), queue.SilentPoll)))
}

// atMost returns d, or a limit that is shorter; 0 means without a limit.
func atMost(limit, d time.Duration) time.Duration {
	if limit > 0 {
		return min(d, limit)
	}
	return d
}
