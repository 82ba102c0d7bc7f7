package httpcall

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// The statuses for a client that is gone. Access logs show one that is not to be sent,
// as nginx has it. What is sent is for a client that closed only its own side, and for
// one whose request was cancelled by the server itself: both can read.
const (
	statusClientGone = 499
	statusUnread     = http.StatusServiceUnavailable
)

var errAnswered = errors.New("the guard is behind what has answered the request: put it before the handler")

// answer gives the client what the outcome says.
func (x *exchange) answer(o *aspect.Outcome) {
	if !x.entered && x.unrouted(o) {
		return // the router answers
	}
	w := x.router.Writer()
	switch o.Verdict {
	case aspect.VerdictAnswered, aspect.VerdictRefused:
		if w.Written() {
			x.tooLate()
			return
		}
	default: // handlers have answered, or a fallback has
	}
	switch o.Verdict {
	case aspect.VerdictAnswered:
		ownHeader(w.Header())
		w.Header().Set(failpolicy.StatusHeader, o.Reply.Mark)
		if o.Reply.Body {
			respond(w, o.Reply.HTTP, "application/json; charset=utf-8", nullBody(o))
		} else {
			w.WriteHeader(o.Reply.HTTP)
			w.WriteHeaderNow()
		}
		settle(x.router, o.Reply.HTTP)
	case aspect.VerdictRefused:
		x.refuse(o.Refusal())
	case aspect.VerdictLost:
		x.lost(o.Refusal())
	case aspect.VerdictRan:
		x.buffer.send()
		if x.inner != nil {
			settle(x.router, x.inner.status)
		}
	case aspect.VerdictFallback:
		// The fallback has answered.
	}
}

// unrouted reports whether a request yields no key that has no route: its answer is 404
// or 405 with a key, too.
func (x *exchange) unrouted(o *aspect.Outcome) bool {
	return o.Cause == failpolicy.Key && o.Status.HTTP < http.StatusInternalServerError && x.router.Route() == ""
}

func nullBody(o *aspect.Outcome) []byte {
	if o.Rule.Response != "" {
		return []byte(o.Rule.Response)
	}
	return []byte("null")
}

// tooLate leaves an answer as it is that was written before the guard was reached.
func (x *exchange) tooLate() {
	x.router.Abort()
	x.router.Report(errAnswered, nil)
	settle(x.router, x.router.Writer().Status())
}

// lost answers for a handler whose lock was lost, if it is not too late: if nothing
// is written, or what is written was kept back.
func (x *exchange) lost(refusal *aspect.RefusedError) {
	if w := x.router.Writer(); w.Written() {
		x.router.Report(refusal, nil)
		settle(x.router, w.Status())
		return
	}
	x.takeBack()
	x.refuse(refusal)
}

// takeBack removes what the handlers have put into the header of their answer. Of one
// that was kept back nothing came there.
func (x *exchange) takeBack() {
	if x.buffer != nil {
		return
	}
	h := x.router.Writer().Header()
	clear(h)
	maps.Copy(h, x.header)
}

// refuse answers a request whose handler does not run, or whose result does not
// count.
func (x *exchange) refuse(refusal *aspect.RefusedError) {
	x.router.Abort()
	w := x.router.Writer()
	ownHeader(w.Header())
	if refusal.Status.HTTP == 0 {
		w.WriteHeader(statusUnread)
		settle(x.router, statusClientGone)
		return
	}
	x.report(refusal)
	if seconds := wholeSeconds(refusal.RetryAfter); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	x.writeError(refusal)
	switch {
	case w.Written():
		settle(x.router, w.Status())
	case w.Status() < http.StatusBadRequest:
		w.WriteHeader(refusal.Status.HTTP) // a writer that wrote nothing must not look like success
	}
}

// writeError has the error writer answer. An answer that begins without a status has the status of the
// refusal, because net/http would make it a success.
func (x *exchange) writeError(refusal *aspect.RefusedError) {
	answer := newBuffer(x.router.Writer(), math.MaxInt, nil)
	answer.status = refusal.Status.HTTP
	x.router.SetWriter(answer)
	defer x.router.SetWriter(answer.Writer)
	x.router.WriteError(refusal)
	answer.send()
}

// report tells the log of a refusal by which somebody is at fault. What is wrong with a
// request goes beside the error, whose text is fit for clients.
func (x *exchange) report(refusal *aspect.RefusedError) {
	switch {
	case errors.Is(refusal.Reason, core.ErrInvalid): // the program's mistake; the text has the key in it
		x.router.Report(refusal, refusal.Reason)
	case refusal.Status.HTTP >= http.StatusInternalServerError:
		x.router.Report(forOperators(refusal), nil)
	case refusal.Cause == failpolicy.Key:
		x.router.Report(refusal, refusal.Reason)
	}
}

// forOperators is a refusal as it is told to the log. Where the program is at fault it
// says what to change.
func forOperators(refusal *aspect.RefusedError) error {
	var e *keyexpr.EvalError
	switch {
	case refusal.Cause == "":
		return refusal.Reason
	case !errors.As(refusal.Reason, &e):
		return refusal
	case e.Reason == keyexpr.ReasonUnset, e.Reason == keyexpr.ReasonInternal:
		return fmt.Errorf("rule %q: %w", refusal.Rule, e)
	default:
		return refusal
	}
}

// wholeSeconds is the value of an HTTP Retry-After header for a hint: whole
// seconds, rounded to the nearest, at least 1. 0 for no hint.
func wholeSeconds(hint time.Duration) int {
	if hint <= 0 {
		return 0
	}
	return max(1, int(hint.Round(time.Second)/time.Second))
}
