package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// An acquire without an answer may still land, even after a release that was sent
// on another connection. So its field is never used again, and somebody keeps
// asking "release if mine" until it is gone for certain.

// settleTime is how long after its lease a command may still be on its way: in a
// proxy, a kernel buffer, or a server that was stopped.
const settleTime = 2 * time.Minute

// abandon leaves a field to the resolver, in all keys of one command. call is that
// command if it was not answered, nil if it was, or if only its effect is in doubt.
func (c *Client) abandon(keys []string, field string, call *redisstore.Call, lease time.Duration) {
	if call != nil {
		call.Settle()
	}
	c.resolve(&resolution{client: c, keys: keys, field: field, call: call, until: time.Now().Add(lease + settleTime)})
}

// relinquish leaves the release of a holder to the resolver. Its field was in Redis
// and no command can bring it back: who asks again is answered for good.
func (c *Client) relinquish(keys []string, field string, lease time.Duration) {
	c.resolve(&resolution{client: c, keys: keys, field: field, seen: true, until: time.Now().Add(lease)})
}

// resolve clears a field up in the background. Close waits until Redis was asked
// once with an answer, or does not answer.
func (c *Client) resolve(r *resolution) {
	if c.unasked.enter() == nil {
		r.unasked = true
	}
	c.spawn(r.run)
}

// asked says that Redis was asked once, or is not going to be.
func (r *resolution) asked() {
	if r.unasked {
		r.unasked = false
		r.client.unasked.exit()
	}
}

// resolution is the clearing up of one abandoned field.
type resolution struct {
	client  *Client
	keys    []string // where it may still be
	field   string
	call    *redisstore.Call // without an answer so far; nil when none is awaited
	seen    bool             // it was in Redis, so that "not mine" says that it has gone
	until   time.Time
	unasked bool // Close waits for it
}

// run asks quickly at first, then every second. "Not mine" is no answer before the
// time in which the command may still land is over.
func (r *resolution) run(ctx context.Context) {
	defer r.asked()
	for pause := firstPause; !r.settled(ctx, pause); pause = min(4*pause, longestAsk) {
		if r.release(ctx) || time.Now().After(r.until) {
			return
		}
	}
}

// longestAsk is the longest pause between two questions.
const longestAsk = time.Second

// errAsk ends a pause of the resolver.
var errAsk = errors.New("time to ask again")

// settled pauses before the next question, but not beyond the late answer of the
// call itself. That answer settles everything if it is a refusal; if it is a grant,
// the field was in Redis and cannot come back. It is not relied on: on a connection
// that hangs it may never come.
func (r *resolution) settled(ctx context.Context, pause time.Duration) bool {
	if r.call == nil {
		return r.client.sleep(ctx, pause) != nil
	}
	bounded, cancel := context.WithTimeoutCause(ctx, jittered(pause), errAsk)
	defer cancel()
	reply, fate, err := r.call.Wait(bounded, r.until)
	if errors.Is(err, errAsk) {
		return false
	}
	r.call = nil
	if err != nil {
		return ctx.Err() != nil || fate != redisstore.Unknown
	}
	refusal, err := redisstore.Granted(reply)
	r.seen = err == nil && refusal == nil
	return err == nil && refusal != nil
}

// release asks for every key, up to one without an answer, and says whether the
// field is gone from all of them.
func (r *resolution) release(ctx context.Context) bool {
	var left []string
	for i, key := range r.keys {
		gone, err := r.releaseKey(ctx, key)
		if err != nil {
			r.keys = slices.Concat(left, r.keys[i:])
			return false
		}
		if !gone {
			left = append(left, key)
		}
	}
	if r.call == nil {
		r.asked()
	}
	r.keys = left
	return len(left) == 0
}

// releaseKey asks once.
func (r *resolution) releaseKey(ctx context.Context, key string) (gone bool, err error) {
	c, now := r.client, time.Now()
	call := c.store.Release(now, key, r.field)
	reply, _, err := call.Wait(ctx, now.Add(c.cfg.backendTimeout))
	if err != nil {
		return false, err
	}
	mine, _, err := redisstore.Released(reply)
	if err != nil || !mine {
		return err == nil && r.seen, nil
	}
	r.seen = true // the command was executed, for all its keys
	c.lines.kick(key)
	return true, nil
}
