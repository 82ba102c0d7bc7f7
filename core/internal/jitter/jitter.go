// Package jitter has the pauses between two tries of one thing: they are jittered, so that
// those who fail together do not try again together. It is for every room, and has no state.
package jitter

import (
	"context"
	"math/rand/v2"
	"time"
)

// Spread is the part of a pause over whose end tries are spread: its last quarter.
const Spread = 4

// Of is a random duration in the last quarter of d; zero unless d is positive.
func Of(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - rand.N(d/Spread+1)
}

// Sleep pauses for d, jittered, or until ctx ends, and then gives its error.
func Sleep(ctx context.Context, d time.Duration) error {
	return SleepUnless(ctx, d, nil, nil)
}

// SleepUnless is Sleep that also ends when the channel is closed, with an error for that.
func SleepUnless(ctx context.Context, d time.Duration, closed <-chan struct{}, err error) error {
	timer := time.NewTimer(Of(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return err
	}
}
