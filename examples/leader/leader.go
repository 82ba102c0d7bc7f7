package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

// campaign runs lead in one instance at a time, until ctx is done. Every instance calls it, with the same lock. While
// another instance leads, campaign waits, which costs Redis about one command a second.
//
// The context of lead ends when the instance loses the lock, before another instance leads. lead then returns, and campaign
// waits for the next term. The token is larger in every later term, so a store can refuse the late write of a former
// leader: see package fence.
//
// To hand over, for example at a shutdown, cancel ctx and wait until campaign returns. campaign has then released the lock,
// and another instance leads within milliseconds. lead may also return before: then another instance leads, if one waits.
// campaign passes the errors to failed. It returns an error only if no later attempt can succeed.
func campaign(ctx context.Context, lock core.Lock, lead func(ctx context.Context, token int64) error, failed func(error)) error {
	for ctx.Err() == nil {
		err := term(ctx, lock, lead)
		switch {
		case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
			// lead has returned, or the shutdown has ended it
		case errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrInvalid):
			return err
		default:
			failed(err) // the lock was lost, Redis does not answer, or lead has failed
		}
		pause(ctx, time.Second) // another instance comes first
	}
	return nil
}

// term waits for the lock and calls lead once.
func term(ctx context.Context, lock core.Lock, lead func(ctx context.Context, token int64) error) error {
	held, hold, err := lock.Acquire(ctx, core.WithToken(), core.Label("leader")) // waits until ctx is done
	if err != nil {
		return err
	}
	defer hold.Release(ctx) //nolint:errcheck // if the release fails, another instance leads when the lease has expired
	err = lead(held, hold.Token())
	if cause := context.Cause(held); errors.Is(cause, core.ErrLost) {
		return errors.Join(cause, err)
	}
	return err
}

// pause waits for d, up to a tenth longer, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d + rand.N(d/10))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// leaderOf returns the [core.Client.ID] of the instance that leads, or "" if none does. The metric
// distributed_lock.client.info maps the id to the pod.
func leaderOf(ctx context.Context, lock core.Lock) (clientID string, err error) {
	state, err := lock.State(ctx)
	for field := range state.Holders { // one, or none
		clientID, _, _ = strings.Cut(field, ":")
	}
	return clientID, err
}
