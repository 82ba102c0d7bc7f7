package core

import (
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// lateAnswer is an acquire without an answer, as the reaper sees it.
type lateAnswer struct{ call *redisstore.Call }

// Late looks whether the answer has come.
func (l lateAnswer) Late() reaper.Outcome {
	reply, fate, err := l.call.Late()
	switch {
	case redisstore.Pending(err):
		return reaper.Pending
	case err != nil && fate != redisstore.Unknown:
		return reaper.Unchanged
	case err != nil:
		return reaper.Unknown
	}
	switch refusal, err := redisstore.Granted(reply); {
	case err != nil:
		return reaper.Unknown
	case refusal != nil:
		return reaper.Unchanged
	default:
		return reaper.Granted
	}
}
