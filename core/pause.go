package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
)

// jittered spreads polls over the last quarter of the interval.
func jittered(d time.Duration) time.Duration { return jitter.Of(d) }

// The pauses between two sends of one operation.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

func nextPause(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// callLimit is the moment up to which a command that is sent now may take, from a Redis
// that answers: it may need a connection, with up to four round trips, and wait for a batch
// in front of it. That Redis does not answer is found out elsewhere, and ends it earlier.
func (c *Client) callLimit(now time.Time) time.Time {
	return now.Add(roundTrips * c.cfg.backendTimeout)
}

const roundTrips = 8
