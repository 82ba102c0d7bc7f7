package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// clearing is what the reaper asks of Redis.
type clearing struct{ client *Client }

// Clears is how many keys one question may be about.
func (r clearing) Clears() int { return r.client.store.Clears() }

// Clear sends one question.
func (r clearing) Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, wire.Fate, error) {
	now, store := time.Now(), r.client.store
	if err := store.Detect(ctx, r.client.detectLimit(now)); err != nil {
		return nil, wire.NotSent, err
	}
	call := store.Clear(now, list)
	if list[0].Kind.Counts() {
		call = store.SettleAll(now, list)
	}
	return call.Wait(ctx, r.client.callLimit(now))
}

// undo frees keys that a field has got and nobody has seen, and reports whether that was done
// in time: it holds its caller up for no longer than grace.
func (c *Client) undo(ctx context.Context, kind *redisstore.Kind, keys []string, field string) bool {
	now := time.Now()
	for _, key := range keys {
		call := c.store.Clear(now, []redisstore.Suspicion{{Kind: kind, Key: key, Fields: []string{field}}})
		found, _, err := call.Wait(ctx, now.Add(grace))
		if err != nil || found[0].Err != nil {
			return false
		}
		c.queues.Wake(key, "")
	}
	return true
}
