package aspect

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
)

// release frees the locks that were taken, the last one first. It runs also when
// the handler panics. core attempts a release whether or not the caller is still
// there.
func (r *run) release() {
	succeeded := r.counts()
	for i := len(r.frames) - 1; i >= 0; i-- {
		if f := &r.frames[i]; f.hold != nil {
			r.releaseFrame(f, succeeded)
		}
	}
}

func (r *run) releaseFrame(f *frame, succeeded bool) {
	err := f.end(r.caller, succeeded)
	f.rule.noteHeld(time.Since(f.acquired))
	if errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrClosed) {
		f.lost = err
	} // otherwise the handler released it early or handed it over, or the observers of the hold's end have the error
}

// end frees the lock, or leaves it behind as the marker of a debounce window.
func (f *frame) end(ctx context.Context, succeeded bool) error {
	if f.rule.Debounce == 0 || !succeeded {
		return f.hold.Release(ctx)
	}
	err := f.hold.Leave(ctx, f.rule.Debounce)
	if errors.Is(err, core.ErrInvalid) {
		// An outer call of the same context holds the lock: it decides about its end.
		return f.hold.Release(ctx)
	}
	return err
}

// judgeLoss decides what losses mean for the answer.
func (r *run) judgeLoss() {
	for i := range r.frames {
		f := &r.frames[i]
		if f.lost == nil || f.unlocked == UnlockedDryRun {
			continue
		}
		r.out.Lost = true
		f.cause, f.err = failpolicy.Lost, f.lost
		if r.out.Verdict == VerdictRan && (f.rule.OnLost == failpolicy.Fail || r.gaveUp(f)) {
			r.answerLoss(i)
		}
	}
}

func (r *run) answerLoss(i int) {
	f := &r.frames[i]
	d := f.rule.decide(failpolicy.Lost)
	f.strategy = d.strategy
	r.out.Verdict, r.out.Cause, r.out.Misconfigured, r.out.Status, r.out.Reason = VerdictLost, d.cause, d.program, d.status, f.lost
	r.out.Rule, r.out.Index, r.out.RetryAfter = f.rule.Resolved, i, 0
	r.observeFailure(f)
}

// gaveUp reports whether the handler's error is the cancellation that a loss
// causes, and not the caller's own, or one of the handler's where no loss cancels.
func (r *run) gaveUp(f *frame) bool {
	err := r.out.Err
	switch {
	case err == nil, r.caller.Err() != nil:
		return false
	case errors.Is(err, core.ErrLost), errors.Is(err, core.ErrClosed):
		return true
	case f.rule.OnLost == failpolicy.Ignore:
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return true
	}
	reporter, ok := r.call.(cancelReporter)
	return ok && reporter.Canceled(err)
}
