package failure_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/core/internal/failure"
)

// The error of several keys is comparable and matches itself, because callers compare the error of a lock
// with the cause of its context and use errors as map keys.
func TestJoin_ComparableWithItself(t *testing.T) {
	t.Parallel()
	joined := failure.Join([]error{failure.LeaseExpired, failure.Unavailable, nil})
	beyond := failure.JoinBeyond(1, []error{failure.LeaseExpired, nil, failure.NotMine})
	for name, err := range map[string]error{"join": joined, "beyond": beyond, "mentioned": failure.Mention(joined)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(err)
			if !errors.Is(err, context.Cause(ctx)) {
				t.Error("the error does not match itself as the cause of a context")
			}
			if known := map[error]bool{err: true}; !known[err] {
				t.Error("the error is not found in a map")
			}
		})
	}
	if other := failure.Join([]error{failure.LeaseExpired, failure.Unavailable, nil}); errors.Is(joined, other) {
		t.Error("the errors of two operations are equal")
	}
}

// If a part of a lock has ended, the joined error matches that outcome. It mentions the other outcomes but
// does not match them.
func TestJoin_OneOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		errs          []error
		matches, not  error
		single, empty bool
	}{
		{name: "lost", errs: []error{failure.Unavailable, failure.LeaseExpired}, matches: failure.Lost, not: failure.Unavailable},
		{name: "not held", errs: []error{failure.Closed, failure.NotHeld}, matches: failure.NotHeld, not: failure.Closed},
		{name: "closed", errs: []error{failure.NotAcquired, failure.Closed}, matches: failure.Closed, not: failure.NotAcquired},
		{name: "unavailable", errs: []error{failure.Unavailable, nil}, matches: failure.Unavailable, not: failure.Lost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := failure.Join(tt.errs); !errors.Is(err, tt.matches) || errors.Is(err, tt.not) {
				t.Errorf("got %v, want an error that matches %v and not %v", err, tt.matches, tt.not)
			}
		})
	}
	if err := failure.Join([]error{nil, nil}); err != nil {
		t.Errorf("no error: got %v", err)
	}
}

// A loss matches Lost and NotHeld, also for callers that unwrap it step by step.
func TestLoss_Unwrap(t *testing.T) {
	t.Parallel()
	if err := errors.Unwrap(failure.LeaseExpired); err != failure.Lost { //nolint:errorlint // one step
		t.Errorf("a loss: got %v", err)
	}
	if err := errors.Unwrap(failure.Lost); err != failure.NotHeld { //nolint:errorlint // one step
		t.Errorf("Lost: got %v", err)
	}
	if !errors.Is(failure.NotMine, failure.Lost) || !errors.Is(failure.NotMine, failure.NotHeld) || errors.Is(failure.NotMine, failure.LeaseExpired) {
		t.Error("a loss does not match Lost and NotHeld only")
	}
}
