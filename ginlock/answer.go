package ginlock

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// StatusHeader tells a client that the answer is not that of the handler under its
// lock: [StatusSkipped], [StatusNull] or [StatusUnlocked].
const StatusHeader = "X-Lock-Status"

// The values of [StatusHeader].
const (
	StatusSkipped  = "skipped"  // the handler did not run, by strategy skip
	StatusNull     = "null"     // the handler did not run, by strategy null_response
	StatusUnlocked = "unlocked" // the handler ran without the lock, by strategy proceed
)

// TokenHeader has the fencing token of the lock, as a decimal number: see
// [WithTokenHeader].
const TokenHeader = "X-Lock-Token" //nolint:gosec // the name of a header; a fencing token is no secret

// The statuses for a client that is gone. Access logs show one that is not to be sent,
// as nginx has it. What is sent is for a client that closed only its own side, and for
// one whose request was cancelled by the server itself: both can read.
const (
	statusClientGone = 499
	statusUnread     = http.StatusServiceUnavailable
)

// answer gives the client what the outcome says.
func (x *call) answer(o *aspect.Outcome) {
	if !x.entered && x.unrouted(o) {
		return // gin answers
	}
	switch o.Verdict {
	case aspect.VerdictSkipped:
		x.c.Header(StatusHeader, StatusSkipped)
		x.c.Status(http.StatusNoContent)
		x.c.Writer.WriteHeaderNow()
		settle(x.c, http.StatusNoContent)
	case aspect.VerdictNull:
		x.c.Header(StatusHeader, StatusNull)
		x.c.Data(http.StatusOK, "application/json; charset=utf-8", nullBody(o))
		settle(x.c, http.StatusOK)
	case aspect.VerdictRefused:
		x.endpoint.guard.refuse(x.c, o.Refusal())
	case aspect.VerdictLost:
		x.lost(o.Refusal())
	case aspect.VerdictRan:
		x.response.send()
		if x.inner != nil {
			settle(x.c, x.inner.status)
		}
	case aspect.VerdictFallback:
		// The fallback has answered.
	}
}

// unrouted reports whether a request yields no key that has no route: its answer is 404
// or 405 with a key, too.
func (x *call) unrouted(o *aspect.Outcome) bool {
	return o.Cause == failpolicy.Key && o.Status.HTTP < http.StatusInternalServerError && x.c.FullPath() == ""
}

func nullBody(o *aspect.Outcome) []byte {
	if o.Rule.Response != "" {
		return []byte(o.Rule.Response)
	}
	return []byte("null")
}

// lost answers for a handler whose lock was lost, if it is not too late: if nothing
// is written, or what is written was kept back.
func (x *call) lost(refusal *aspect.RefusedError) {
	if x.c.Writer.Written() {
		_ = x.c.Error(refusal) //nolint:errcheck // gives back what it was given
		settle(x.c, x.c.Writer.Status())
		return
	}
	x.takeBack()
	x.endpoint.guard.refuse(x.c, refusal)
}

// takeBack removes what the handlers have put into the header of their answer. Of one
// that was kept back nothing came there.
func (x *call) takeBack() {
	if x.response != nil {
		return
	}
	h := x.c.Writer.Header()
	clear(h)
	maps.Copy(h, x.header)
}

// refuse answers a request whose handler does not run, or whose result does not
// count.
func (g *Guard) refuse(c *gin.Context, refusal *aspect.RefusedError) {
	c.Abort()
	status := refusal.Status.HTTP
	if status == 0 {
		c.Status(statusUnread)
		settle(c, statusClientGone)
		return
	}
	report(c, refusal)
	if seconds := failpolicy.RetryAfterSeconds(refusal.RetryAfter); seconds > 0 {
		c.Header("Retry-After", strconv.Itoa(seconds))
	}
	g.cfg.writeError(c, refusal)
	switch {
	case c.Writer.Written():
		settle(c, c.Writer.Status())
	case c.Writer.Status() < http.StatusBadRequest:
		c.Status(status) // a writer that wrote nothing must not look like success
	}
}

// report puts a refusal by which somebody is at fault into c.Errors, for the log. What is
// wrong with a request goes beside the error, whose text is fit for clients.
func report(c *gin.Context, refusal *aspect.RefusedError) {
	switch {
	case errors.Is(refusal.Reason, core.ErrInvalid): // the program's mistake; the text has the key in it
		_ = c.Error(refusal).SetMeta(&loggedReason{refusal.Reason}) //nolint:errcheck // gives back what it was given
	case refusal.Status.HTTP >= http.StatusInternalServerError:
		_ = c.Error(forOperators(refusal)) //nolint:errcheck // gives back what it was given
	case refusal.Cause == failpolicy.Key:
		_ = c.Error(refusal).SetMeta(&loggedReason{refusal.Reason}) //nolint:errcheck // likewise
	}
}

// loggedReason is a reason that gin's logger prints. gin.ErrorLogger, which sends errors to
// clients, makes {} of it.
type loggedReason struct{ reason error }

// String is the text of the reason.
func (l *loggedReason) String() string { return fmt.Sprint(l.reason) }

// forOperators is a refusal as it is put into c.Errors. Where the program is at
// fault it says what to change.
func forOperators(refusal *aspect.RefusedError) error {
	var e *keyexpr.EvalError
	switch {
	case refusal.Cause == "":
		return refusal.Reason
	case !errors.As(refusal.Reason, &e):
		return refusal
	case e.Reason == keyexpr.ReasonUnset:
		return fmt.Errorf("ginlock: rule %q: lock installed before authentication? put the guard after what sets the variable: %w", refusal.Rule, e)
	case e.Reason == keyexpr.ReasonInternal:
		return fmt.Errorf("ginlock: rule %q: %w", refusal.Rule, e)
	default:
		return refusal
	}
}
