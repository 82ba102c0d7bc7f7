package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
)

// unobserved writes events of a client to [slog.Default] if no observer has a function for them. A program without
// telemetry would not notice them otherwise. Package telemetry writes the same messages and
// attributes, so that a search finds both. A hint says what to do. Records contain no key.
type unobserved struct {
	lost, heldTooLong, left, leaked, release, busy, notLock limitedRecord

	polling sync.Once // the warning that waiters poll
}

func newUnobserved() *unobserved {
	return &unobserved{
		lost:        limitedRecord{most: 10, level: slog.LevelError, text: "lock lost under its holder"},
		heldTooLong: limitedRecord{most: 10, level: slog.LevelWarn, text: "lock held too long: it is not renewed any more"},
		left:        limitedRecord{most: 10, level: slog.LevelWarn, text: "lock left to its lease: the client was closed under its holder"},
		leaked:      limitedRecord{most: 10, level: slog.LevelError, text: "lock never released: its Hold was garbage-collected"},
		release:     limitedRecord{most: 10, level: slog.LevelWarn, text: "lock release failed"},
		busy:        limitedRecord{most: 1, level: slog.LevelInfo, text: "lock busy: another process holds it, or has died with it"},
		notLock:     limitedRecord{most: 1, level: slog.LevelError, text: "key holds something that is not a lock"},
	}
}

// limitedRecord is a message of which at most a number of records are written in unobservedWindow.
type limitedRecord struct {
	most  int
	level slog.Level
	text  string

	mu         sync.Mutex
	opened     time.Time
	written    int
	suppressed int // since the last record

	stuck stuck
}

const unobservedWindow = 10 * time.Second

// patience is how long a goroutine waits for the logger.
const patience = 100 * time.Millisecond

// allow reports whether a record may be written now, and the number of records that were not written since the last one.
func (r *limitedRecord) allow(now time.Time) (ok bool, suppressed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.opened) >= unobservedWindow {
		r.opened, r.written = now, 0
	}
	if r.stuck.Load() || r.written == r.most {
		r.suppressed++
		return false, 0
	}
	r.written++
	suppressed, r.suppressed = r.suppressed, 0
	return true, suppressed
}

// write writes a record. It calls attrs only if the record is written. If the logger stands still, write returns after
// patience.
func (r *limitedRecord) write(ctx context.Context, attrs func() []slog.Attr) {
	out := slog.Default()
	if !out.Enabled(ctx, r.level) {
		return
	}
	ok, suppressed := r.allow(time.Now())
	if !ok {
		return
	}
	list := attrs()
	if suppressed > 0 {
		list = append(list, slog.Int("suppressed", suppressed))
	}
	r.stuck.record(func() { out.LogAttrs(ctx, r.level, r.text, list...) })
}

// stuck reports whether the logger has not returned from a record within patience.
type stuck struct{ atomic.Bool }

// record calls write, which writes a record, and waits for it for at most patience: the goroutines that renew leases write
// records, too. It recovers a panic of the logger, which would end the process.
func (s *stuck) record(write func()) {
	done := make(chan struct{})
	go func() {
		defer func() {
			_ = recover() //nolint:errcheck // as above
			close(done)
		}()
		write()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.Store(true)
		go func() {
			<-done
			s.Store(false)
		}()
	}
}

// warnOfPrefix logs that the prefix of a client ends without a separator.
func (c *Client) warnOfPrefix() {
	if advice := prefixAdvice(c.cfg.prefix); advice != "" {
		slog.Warn("prefix of locks ends without a separator", slog.String("prefix", c.cfg.prefix), slog.String("hint", advice))
	}
}

// warnOfPolling logs once that Redis refuses the subscriptions of a client.
func (u *unobserved) warnOfPolling(clientID string, cause error) {
	u.polling.Do(func() {
		new(stuck).record(func() {
			slog.Warn("redis refuses the messages of locks: waiters ask once a second instead",
				slog.String("client", clientID), slog.String("error", ErrorText(cause)),
				slog.String("hint", "give the Redis user its channels and +subscribe, +ssubscribe, +ping: Preflight, and the command interlock doctor, print the rule"))
		})
	})
}

// refusal logs that another process has the lock of an acquisition that ended with err. A killed process looks the same
// until its lease ends.
func (u *unobserved) refusal(ctx context.Context, a Acquisition, err error) {
	taken, busy := errors.AsType[*NotAcquiredError](err)
	if !busy || taken.OwnHold || taken.BlockedBy == "" || strings.HasPrefix(taken.BlockedBy, a.ClientID+":") {
		return
	}
	u.busy.write(ctx, func() []slog.Attr {
		return append(lockAttrs(&a, nil), slog.String("holder", taken.BlockedBy), slog.Duration("waited", taken.Waited),
			slog.Duration("lease_left", taken.RetryAfter.Round(time.Millisecond)),
			slog.String("hint", "if no process has this holder, the key goes when its lease ends; the commands interlock who and interlock release find and free it"))
	})
}

// loss logs a loss.
func (u *unobserved) loss(ctx context.Context, h *holding.Hold, cause error) {
	record, hint := &u.lost, "another holder may have run at the same time"
	fixed := !h.Info().Renewed
	switch {
	case errors.Is(cause, ErrHeldTooLong):
		record, cause, hint = &u.heldTooLong, nil, "the key goes when the hold is released, or when its lease ends"
	case !errors.Is(cause, ErrLost):
		record, cause, hint = &u.left, nil, "shut the server down before the lock client, so that its handlers have released their locks"
	case errors.Is(cause, failure.LeaseExpired) && fixed:
		hint = fmt.Sprintf("the work took longer than its lease of %s, and another holder may have run at the same time: "+
			"give it a longer lease time, or none, so that the lease is renewed", h.Info().Lease)
	case errors.Is(cause, failure.LeaseExpired):
		hint = fmt.Sprintf("no renewal reached redis within the lease of %s, and another holder may have run at the same time: "+
			"the process stood still, or redis could not be reached", h.Info().Lease)
	case errors.Is(cause, failure.NotMine):
		hint = "the key was deleted, forced away or evicted, or a failover lost it, and another holder may have run at the same time"
	}
	u.hold(ctx, record, h, cause, hint)
}

// leak logs a hold that was never released.
func (u *unobserved) leak(ctx context.Context, h *holding.Hold) {
	u.hold(ctx, &u.leaked, h, nil, "release each hold on every path, by defer or by Do")
}

// failedRelease logs the end of a hold if it failed for another reason than a loss, which was logged before.
func (u *unobserved) failedRelease(ctx context.Context, h *holding.Hold, how *holding.End) {
	err := how.Err
	if how.Moved || how.HeldTooLong || how.Lost || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrClosed) {
		return
	}
	u.hold(ctx, &u.release, h, err, "the key goes when the release gets through in the background, or when its lease ends")
}

func (u *unobserved) hold(ctx context.Context, r *limitedRecord, h *holding.Hold, err error, hint string) {
	r.write(ctx, func() []slog.Attr {
		info := infoOf(h)
		return append(lockAttrs(&info.Acquisition, err),
			slog.String("holder", info.Field), slog.Duration("held", time.Since(info.Acquired)), slog.String("hint", hint))
	})
}

func lockAttrs(a *Acquisition, err error) (list []slog.Attr) {
	if a.Label != "" {
		list = append(list, slog.String("rule", a.Label))
	}
	list = append(list, slog.String("kind", string(a.Kind)), slog.String("key_hash", KeyHash(a.Key)))
	if err != nil {
		list = append(list, slog.String("error", ErrorText(publicError(err))))
	}
	return list
}
