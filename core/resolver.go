package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// An acquire without an answer may still land, even after a release that was sent
// on another connection. So its field is never used again, and somebody keeps
// asking "release if mine" until it is gone for certain.

// settleTime is how long after its lease a command may still be on its way: in a
// proxy, a kernel buffer, or a server that was stopped.
const settleTime = 2 * time.Minute

// abandon leaves a field to the resolver. call is the command that was not
// answered, nil if it was, or if only its effect is in doubt.
func (c *Client) abandon(key, field string, call *redisstore.Call, lease time.Duration) {
	last := time.Now()
	c.spawn(func(ctx context.Context) {
		r := resolution{client: c, key: key, field: field, until: last.Add(lease + settleTime)}
		if call != nil && r.settledBy(ctx, call) {
			return
		}
		r.run(ctx)
	})
}

// resolution is the clearing up of one abandoned field.
type resolution struct {
	client     *Client
	key, field string
	until      time.Time
}

// settledBy waits for the late reply of the call itself: a refusal settles it.
func (r *resolution) settledBy(ctx context.Context, call *redisstore.Call) bool {
	reply, fate, err := call.Wait(ctx, r.until)
	if err != nil {
		return fate != redisstore.Unknown
	}
	refusal, err := redisstore.Granted(reply)
	return err == nil && refusal != nil
}

// run asks quickly at first, then every second. "Not mine" is no answer before the
// time in which the command may still land is over.
func (r *resolution) run(ctx context.Context) {
	for pause := firstPause; ; pause = min(4*pause, time.Second) {
		if r.release(ctx) || time.Now().After(r.until) {
			return
		}
		if r.client.sleep(ctx, pause) != nil {
			return
		}
	}
}

func (r *resolution) release(ctx context.Context) bool {
	c := r.client
	now := time.Now()
	reply, _, err := c.store.Release(now, r.key, r.field).Wait(ctx, now.Add(c.cfg.backendTimeout))
	if err != nil {
		return false
	}
	mine, _, err := redisstore.Released(reply)
	if err != nil || !mine {
		return false
	}
	c.lines.kick(r.key)
	return true
}
