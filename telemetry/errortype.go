package telemetry

import (
	"context"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/core"
)

// errorWrongType is the type of the error that a key holds something other than a lock.
const errorWrongType = "wrong_type"

// errorType is the value of error.type: a word of a short list.
func errorType(err error) string {
	var timeout interface{ Timeout() bool }
	var reply interface {
		error
		RedisError()
	}
	switch {
	case errors.Is(err, core.ErrLost):
		return outcomeLost
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &reply):
		if strings.Contains(reply.Error(), "WRONGTYPE") { // of a script, behind other words
			return errorWrongType
		}
		return "redis_error"
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	default:
		return "_OTHER" // the word that the semantic conventions have for the rest
	}
}
