// Package campaign elects a leader: one instance of a service that does a task. Copy campaign.go.
package campaign

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Run runs lead in one instance at a time, until ctx is done. Every instance calls it, with the same lock. While another
// instance leads, Run waits, which costs Redis about one command a second.
//
// The context of lead ends when the instance loses the lock. If the lease expires, the context ends before another instance
// leads. If the lock is deleted or forced away, or if Redis loses it in a failover, the context ends at the next renewal, and
// another instance may lead before that. lead must return when its context ends. Run then waits for the next term. The token
// is larger in every later term, so a store can refuse the late write of a former leader: see package fence. opts are options
// of the acquisition. For example, [core.MaxHold] limits a term, so that a leader that hangs loses the lock.
//
// To hand over, for example at a shutdown, cancel ctx and wait until Run returns. Run has then released the lock, and
// another instance leads within milliseconds. lead may also return before: then another instance leads, if one waits. Run
// passes the errors of the lock and of lead to failed. It returns an error only if no later attempt can acquire the lock.
func Run(ctx context.Context, lock core.Lock, lead func(ctx context.Context, token int64) error, failed func(error), opts ...core.AcquireOption) error {
	opts = append([]core.AcquireOption{core.WithToken(), core.Label("leader")}, opts...)
	for ctx.Err() == nil {
		held, hold, err := lock.Acquire(ctx, opts...) // waits until ctx is done
		switch {
		case err == nil:
			err = term(ctx, held, hold, lead)
		case errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrInvalid):
			return err
		}
		if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) { // not ended by the shutdown
			failed(err) // the lock was lost, Redis does not answer, or lead has failed
		}
		select { // so that another instance leads next
		case <-time.After(time.Second + rand.N(time.Second/10)):
		case <-ctx.Done():
		}
	}
	return nil
}

// term calls lead once and releases the lock.
func term(ctx, held context.Context, hold *core.Hold, lead func(ctx context.Context, token int64) error) error {
	defer hold.Release(ctx) //nolint:errcheck // if the release fails, another instance leads when the lease has expired
	err := lead(held, hold.Token())
	if cause := context.Cause(held); errors.Is(cause, core.ErrLost) {
		return errors.Join(cause, err)
	}
	return err
}

// Leader returns the [core.Client.ID] of the instance that leads, or "" if none does. The metric
// distributed_lock.client.info maps the id to the pod.
func Leader(ctx context.Context, lock core.Lock) (clientID string, err error) {
	state, err := lock.State(ctx)
	for field := range state.Holders { // one, or none
		clientID, _, _ = strings.Cut(field, ":")
	}
	return clientID, err
}
