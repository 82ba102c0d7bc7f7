package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// clearing is what the reaper asks of Redis.
type clearing struct{ client *Client }

// Clears is how many keys one question may be about.
func (r clearing) Clears() int { return r.client.store.Clears() }

// Clear sends one question.
func (r clearing) Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, redisstore.Fate, error) {
	now := time.Now()
	call := r.client.store.Clear(now, list)
	return call.Wait(ctx, r.client.callLimit(now))
}
