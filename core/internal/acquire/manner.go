package acquire

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// manner describes how the callers of a kind of lock wait.
type manner struct {
	lane       func(a *attempt) string                                                 // returns the lane of the waiter; "": the waiter joins the queue of the key
	field      func(a *attempt) string                                                 // returns the field of the next command
	onNoAnswer func(a *attempt, field string, call *redisstore.Call[redisstore.Grant]) // leaves a field without an answer to the reaper
	sleep      func(a *attempt, todo queue.Step) time.Duration                         // returns how long the waiter sleeps if nothing wakes it
	listens    bool                                                                    // the kind has messages
	announces  bool                                                                    // attempts keep out other callers that would share the lock
}

// manners has a row for each [redisstore.Waiting].
var manners = [...]manner{ //nolint:gochecknoglobals // a table that is never changed
	redisstore.InLine:    {lane: noLane, field: newField, onNoAnswer: (*attempt).abandon, sleep: sleepFor(pollInterval), listens: true},
	redisstore.Announced: {lane: noLane, field: newField, onNoAnswer: (*attempt).abandon, sleep: sleepFor(announceInterval), listens: true, announces: true},
	redisstore.Spinning:  {lane: noLane, field: newField, onNoAnswer: (*attempt).abandon, sleep: (*attempt).spin},
	redisstore.Abreast:   {lane: newField, field: newField, onNoAnswer: (*attempt).abandon, sleep: sleepFor(pollInterval), listens: true},
	redisstore.InRedis: {
		lane: (*attempt).placeLane, field: (*attempt).placeField, onNoAnswer: (*attempt).keepGhost, sleep: (*attempt).sleepInPlace, listens: true,
	},
}

func mannerOf(kind *redisstore.Kind) *manner { return &manners[kind.Waits] }

const (
	// announceInterval is the longest sleep of a waiter whose attempts announce it: 500 ms. The mark that an attempt
	// leaves in Redis lasts for 900 ms, so 400 ms are left for the round trip of the next attempt.
	announceInterval = 5 * redisstore.LongestMark / 9
	// memberInterval is how long a waiter at one server of a Redlock is refused before the Redlock asks the other
	// servers again, so that it asks them at least once per poll interval.
	memberInterval = pollInterval / 2
	// spinPause is the first pause of a waiter that spins. Each further pause is twice as long as the one before, up to
	// [queue.SilentPoll], so that the waiter gets a turn now and then even beside a busy process.
	spinPause = time.Millisecond
)

func noLane(*attempt) string { return "" }

func newField(a *attempt) string { return a.in.NextField(a.wish.Kind) + a.wish.Operation }

// abandon leaves a field to the reaper at once.
func (a *attempt) abandon(field string, call *redisstore.Call[redisstore.Grant]) {
	call.Settle()
	a.in.Reaper.Abandon(a.wish.Kind, a.wantedKeys(), field, lateAnswer{call: call}, a.wish.Lease)
}

// sleepFor returns a function that sleeps for an interval, or for [queue.SilentPoll] while no messages arrive.
func sleepFor(interval time.Duration) func(*attempt, queue.Step) time.Duration {
	return func(_ *attempt, todo queue.Step) time.Duration {
		if todo.NoMessages {
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

// atMost returns d, or limit if that is shorter. A limit of 0 means no limit.
func atMost(limit, d time.Duration) time.Duration {
	if limit > 0 {
		return min(d, limit)
	}
	return d
}
