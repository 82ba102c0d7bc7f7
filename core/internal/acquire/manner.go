package acquire

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// manner describes how the callers of a kind of lock wait.
type manner struct {
	lane       func(a *attempt) string                                                 // returns the lane, a separate queue, of the waiter; "": the waiter joins the queue of the key
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
	// announceInterval is the longest sleep of a waiter whose attempts leave a mark in Redis: 500 ms. The mark keeps
	// out other callers for 900 ms, so 400 ms are left for the round trip of the next attempt.
	announceInterval = 5 * redisstore.LongestMark / 9
	// memberInterval is how long one server of a Redlock refuses the waiter before the Redlock asks the other servers
	// again. So the Redlock asks all servers at least once per poll interval.
	memberInterval = pollInterval / 2
	// spinPause is the first pause of a waiter that spins. Each further pause is twice as long as the one before, up to
	// [queue.SilentPoll]. That is short enough for the waiter to get a turn even if another process keeps the lock
	// busy.
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
