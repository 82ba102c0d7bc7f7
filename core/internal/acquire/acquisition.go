package acquire

import (
	"cmp"
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// Acquisition acquires one or several keys for one caller. It contains the memory of the usual single attempt.
type Acquisition struct {
	Acquirer *Acquirer
	Wish     Wish
	Report   Report

	first attempt
}

// Reusable reports whether the memory of the acquisition can be used again. If the acquisition acquired one key without
// waiting, no other goroutine refers to the memory.
func (a *Acquisition) Reusable() bool {
	return len(a.Wish.Keys) == 1 && !a.Report.Contended && a.first.first.Reusable()
}

// Acquire acquires all keys or none. For a kind of lock without holders, such as a latch, it returns no holders. If ctx
// carries a lost lock of one of the keys, Acquire returns that loss instead of any other error.
func (a *Acquisition) Acquire(ctx context.Context) ([]*holding.Holder, error) {
	holders, err := a.take(ctx)
	if err != nil {
		err = cmp.Or(a.Acquirer.FindLoss(ctx, a.Wish.Keys), err) // a loss is the error, even if another error was found first
	}
	a.Acquirer.AfterAcquire(ctx, a.Wish.Keys[0], a.Report.Start, err)
	return holders, err
}

// take is like Acquire, but does not look for losses and does not call AfterAcquire.
func (a *Acquisition) take(ctx context.Context) ([]*holding.Holder, error) {
	in, keys := a.Acquirer, a.Wish.Keys
	if ctx.Err() != nil {
		return nil, &BusyError{Key: keys[0], Cause: failure.Ended(ctx)}
	}
	now, err := a.awaitCluster(ctx)
	if err != nil {
		return nil, err
	}
	if len(keys) > 1 {
		return in.takeSeveral(ctx, &a.Wish, &a.Report)
	}
	again, under, err := in.FindCarried(ctx, keys[0], &a.Wish)
	switch {
	case err != nil:
		return nil, err
	case again != nil:
		return a.reenter(ctx, again)
	}
	a.Wish.under = under
	a.first = in.attempt(keys[0], &a.Wish, &a.Report, now)
	got, err := a.first.run(ctx)
	if err != nil {
		return nil, err
	}
	a.first.got = nil // an acquisition that is kept for its memory must not keep the holder
	a.Report.Acquired, a.Report.Field, a.Report.Token = a.first.now, got.Field(), got.Token()
	if a.Wish.Kind.Holds == redisstore.Unheld {
		return nil, nil
	}
	got.Watch(a.Wish.Renewed, a.first.now)
	return got.AsSlice(), nil
}

// reenter adds a hold to the holder o, which ctx carries, and completes the report.
func (a *Acquisition) reenter(ctx context.Context, o *holding.Holder) ([]*holding.Holder, error) {
	if err := a.Acquirer.reenter(ctx, o, &a.Wish, &a.Report); err != nil {
		return nil, err
	}
	a.Report.Reentered, a.Report.Acquired, a.Report.Field, a.Report.Token = true, time.Now(), o.Field(), o.Token()
	return o.AsSlice(), nil
}

// awaitCluster waits until a Cluster has answered for the first time, which may take a while, and returns the time of
// the answer. Without a Cluster, or if the Cluster has answered before, it returns the start of the acquisition.
func (a *Acquisition) awaitCluster(ctx context.Context) (now time.Time, err error) {
	in, start := a.Acquirer, a.Report.Start
	if in.Redis.Reached() {
		return start, nil
	}
	limit := in.Sender.DetectLimit(start)
	if !a.Wish.Forever && a.Wish.Wait > 0 {
		limit = resend.Earliest(limit, start.Add(a.Wish.Wait))
	}
	err = in.Redis.Detect(ctx, limit)
	if err != nil && ctx.Err() != nil {
		return start, &BusyError{Key: a.Wish.Keys[0], Waited: time.Since(start), Cause: failure.Ended(ctx)}
	}
	return time.Now(), failure.BecauseOf(err)
}
