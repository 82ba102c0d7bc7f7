package acquire

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// leavingContext is canceled after a number of calls of Err.
type leavingContext struct {
	context.Context //nolint:containedctx // this type is a context

	left int
}

func (c *leavingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// relinquishedFields records the fields that are left to the reaper.
type relinquishedFields struct {
	Reaper

	fields []string
}

func (r *relinquishedFields) Relinquish(_ *redisstore.Kind, _ []string, field string, _ time.Duration) {
	r.fields = append(r.fields, field)
}

// Whenever the caller leaves, it either takes a grant or leaves it to the reaper.
func TestAttempt_Granted(t *testing.T) {
	t.Parallel()
	for n := range 5 {
		for _, sent := range []time.Duration{0, -time.Hour} {
			t.Run(fmt.Sprint(n, sent), func(t *testing.T) {
				t.Parallel()
				clearing, queues := &relinquishedFields{}, queue.New(queue.Config{PerKey: 1, InAll: 1})
				kind := redisstore.NewKinds().Reentrant
				in := New(Config{Reaper: clearing, Queues: queues, Holdings: holding.New(holding.Config{Queues: queues})})
				now := time.Now()
				a := attempt{in: in, wish: &Wish{Kind: kind, Lease: time.Minute}, report: &Report{}, key: "k", now: now}
				g, _, err := a.checkGrant(&leavingContext{t.Context(), n}, grant{field: "f", sent: now.Add(sent)})
				if taken := err == nil && g.field == "f"; taken == (len(clearing.fields) == 1) {
					t.Errorf("taken: %t, left to the reaper: %q, error %v", taken, clearing.fields, err)
				}
				if err != nil && !errors.Is(err, failure.NotAcquired) && !errors.Is(err, errTooLate) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
