// Package jitter provides jittered pauses between two attempts, so that clients that fail at the same
// moment do not try again at the same moment.
//
// The package has no state. Every package that retries calls it.
package jitter

import (
	"context"
	"math/rand/v2"
	"time"
)

// Spread is the divisor of the spread interval: attempts are spread over the last quarter of a pause.
const Spread = 4

// Of returns a random duration in the last quarter of d. It returns zero unless d is positive.
func Of(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d - rand.N(d/Spread+1)
}

// Sleep pauses for about d; see Of. If ctx is done first, Sleep returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	return SleepUnless(ctx, d, nil, nil)
}

// SleepUnless pauses like Sleep. If closed is closed first, it returns err.
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
