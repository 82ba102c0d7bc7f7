package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// abandon leaves a field to the reaper, in all keys of one command. call is that command if
// it was not answered, nil if it was, or if only its effect is in doubt.
func (c *Client) abandon(kind *redisstore.Kind, keys []string, field string, call *redisstore.Call[redisstore.Grant], lease time.Duration) {
	var late reaper.LateAnswer
	if call != nil {
		call.Settle()
		late = lateAnswer{call, kind.Waits == redisstore.InRedis}
	}
	c.reaper.Abandon(kind, keys, field, late, lease)
}

// lateAnswer is an acquire without an answer, as the reaper sees it.
type lateAnswer struct {
	call   *redisstore.Call[redisstore.Grant]
	queues bool // a refusal has left its field in a queue
}

// Late looks whether the answer has come.
func (l lateAnswer) Late() reaper.Outcome {
	grant, fate, err := l.call.Late()
	switch {
	case wire.Pending(err):
		return reaper.Pending
	case wire.Short(err):
		return reaper.Granted // too few replicas know
	case err != nil && fate != wire.Unknown:
		return reaper.Unchanged
	case err != nil:
		return reaper.Unknown
	case grant.Refusal != nil && !l.queues:
		return reaper.Unchanged
	default:
		return reaper.Granted
	}
}
