package httpcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// The answer to a client that has left. statusClientGone is never sent; access logs show it, as nginx does. The answer is
// a whole one with statusUnread and retryUnread, because two kinds of client still read it: a client that closed only its side of
// the connection, and a client whose request the server itself canceled, for example by a read deadline.
const (
	statusClientGone = 499
	statusUnread     = http.StatusServiceUnavailable
	retryUnread      = time.Second
)

var errAnswered = errors.New("the guard runs after a handler that has answered the request: put it before that handler")

// answer writes the answer of a guard to a request.
type answer struct {
	w       Writer
	router  Router
	entered bool          // the handlers that the guard protects were called
	buffer  *buffer       // holds their response back; nil if the route has no buffer
	header  http.Header   // see exchange
	inner   *sealedWriter // see exchange
}

// result writes the guard's part of the answer for an outcome. It returns what the adapter has to do then. Serve sets
// Abort in it if no handler has run.
func (a answer) result(o *aspect.Outcome) Result {
	if !a.entered && a.routerAnswers(o) {
		return Result{}
	}
	switch o.Verdict {
	case aspect.VerdictAnswered, aspect.VerdictRefused:
		if a.w.Written() { // a handler outside the guard answered
			return Result{Problem: errAnswered, Writer: seal(a.w, a.w.Status())}
		}
		if o.Verdict == aspect.VerdictRefused {
			return a.refuse(o.Refusal())
		}
		return a.reply(o)
	case aspect.VerdictLost:
		return a.answerLoss(o.Refusal())
	case aspect.VerdictFallback:
		return Result{} // the fallback answered
	default: // the handlers answered
		a.buffer.send()
		if a.inner != nil {
			return Result{Writer: seal(a.w, a.inner.status)}
		}
		return Result{}
	}
}

// routerAnswers reports whether the router answers a request that yields no key. The router answers it if it has no
// route for it: 404 or 405, as if there were a key.
func (a answer) routerAnswers(o *aspect.Outcome) bool {
	return o.Cause == failpolicy.Key && o.Status.HTTP < http.StatusInternalServerError && a.router.Route() == ""
}

// reply writes the answer for strategies skip and null_response.
func (a answer) reply(o *aspect.Outcome) Result {
	setOwnHeader(a.w.Header())
	a.w.Header().Set(failpolicy.StatusHeader, o.Reply.Mark)
	if o.Reply.Body {
		body := "null"
		if o.Rule.Response != "" {
			body = o.Rule.Response
		}
		respond(a.w, o.Reply.HTTP, "application/json; charset=utf-8", []byte(body))
	} else {
		a.w.WriteHeader(o.Reply.HTTP)
		a.w.WriteHeaderNow()
	}
	return Result{Writer: seal(a.w, o.Reply.HTTP)}
}

// answerLoss prepares the answer to a request whose lock was lost. If a part of the response was already sent,
// answerLoss only reports the loss.
func (a answer) answerLoss(refusal *aspect.RefusedError) Result {
	if a.w.Written() {
		return Result{Problem: refusal, Writer: seal(a.w, a.w.Status())}
	}
	if a.buffer == nil { // with a buffer, the handlers did not touch this header
		h := a.w.Header()
		clear(h)
		maps.Copy(h, a.header)
	}
	return a.refuse(refusal)
}

// refuse prepares the answer to a request whose handler does not run, or whose response is discarded. The adapter writes
// the answer with [Result.Refuse].
func (a answer) refuse(refusal *aspect.RefusedError) Result {
	setOwnHeader(a.w.Header())
	gone := refusal.Status.HTTP == 0
	if gone {
		refusal.Status.HTTP, refusal.RetryAfter = statusUnread, retryUnread
	}
	if seconds := nearestSeconds(refusal.RetryAfter); seconds > 0 {
		a.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	r := Result{Abort: true, Refusal: refusal, Writer: a.w}
	if gone {
		r.logged = statusClientGone
		return r
	}
	r.Problem, r.Cause = splitForLog(refusal)
	return r
}

// Refuse calls write to answer the request. It is for a Result with a Refusal. The header Retry-After is already set. If
// write sends a body without a status, the answer gets the status of the refusal, because net/http would send 200. If
// write sends an answer, r.Writer accepts no more writes after Refuse. If write writes nothing, a layer outside the guard
// can answer.
func (r *Result) Refuse(write func(w Writer, refusal *aspect.RefusedError)) {
	w, status := r.Writer, r.Refusal.Status.HTTP
	response := newErrorBuffer(w, status)
	write(response, r.Refusal)
	response.send()
	switch {
	case w.Written():
		r.Writer = seal(w, w.Status())
	case w.Status() < http.StatusBadRequest:
		w.WriteHeader(status) // an error writer that wrote nothing must not look like success
	}
	if r.logged != 0 {
		r.Writer = seal(w, r.logged)
	}
}

// splitForLog returns the error to log for a refusal, nil if there is nothing to log. It returns the cause separately,
// because clients may see the message of problem.
func splitForLog(refusal *aspect.RefusedError) (problem, cause error) {
	switch {
	case errors.Is(refusal.Reason, core.ErrInvalid): // a mistake of the program; its text contains the key
		return refusal, refusal.Reason
	case refusal.Status.HTTP >= http.StatusInternalServerError:
		return operatorError(refusal), nil
	case refusal.Cause == failpolicy.Key:
		return refusal, refusal.Reason
	default:
		return nil, nil
	}
}

// operatorError returns the error to log for a refusal with a 5xx status. If the program is at fault, the error says what
// to change.
func operatorError(refusal *aspect.RefusedError) error {
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

// nearestSeconds returns the value of a Retry-After header for a hint: the nearest number of seconds, at least 1. Without a
// hint it returns 0.
func nearestSeconds(hint time.Duration) int {
	if hint <= 0 {
		return 0
	}
	return max(1, int(hint.Round(time.Second)/time.Second))
}

// setOwnHeader prepares the header of an answer that the guard gives instead of the handler. Layers around the
// guard may already have set headers that describe the handler's answer or let caches keep it. setOwnHeader removes
// those headers and forbids caches to store the answer. Other headers stay: CORS, Vary, security and tracing headers
// apply to every answer, and a Set-Cookie belongs to the session of the client.
func setOwnHeader(h http.Header) {
	encoded := encodesAll(h)
	for name := range h {
		if describesAnswer(http.CanonicalHeaderKey(name)) && (name != "Content-Encoding" || !encoded) {
			delete(h, name)
		}
	}
	h.Set("Cache-Control", "no-store")
}

// describesAnswer reports whether the header with the given name describes one particular answer, or controls how long
// caches keep it.
func describesAnswer(name string) bool {
	switch name {
	case "Accept-Ranges", "Age", "Digest", "Etag", "Expires", "Last-Modified", "Pragma", "Repr-Digest", "Surrogate-Control",
		"Trailer", "Transfer-Encoding", "X-Accel-Expires", failpolicy.StatusHeader, failpolicy.TokenHeader:
		return true
	default: // such as Content-Type and CDN-Cache-Control
		return strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "Content-Security-Policy") ||
			strings.HasSuffix(name, "Cache-Control")
	}
}

// encodesAll reports whether a layer around the guard compresses every answer. Such a layer names
// Accept-Encoding in Vary, and its Content-Encoding is right for the answer of the guard, too.
func encodesAll(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Vary"), func(value string) bool {
		return strings.Contains(strings.ToLower(value), "accept-encoding")
	})
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// WriteProblem answers with an RFC 9457 problem document. Its type and title come from the cause (see package
// failpolicy). Its status is the status of the refusal. Its detail is the Message of the rule, if the rule has one. If the
// program is at fault, its type is "about:blank".
func WriteProblem(w Writer, refusal *aspect.RefusedError) {
	cause := refusal.Cause
	if refusal.Misconfigured {
		cause = "" // the request is not at fault
	}
	doc := problem{Type: cause.Type(), Title: cause.Title(), Status: refusal.Status.HTTP}
	if refusal.Message != doc.Title {
		doc.Detail = refusal.Message
	}
	body, err := json.Marshal(doc)
	if err != nil { // strings and a number always encode
		panic(err)
	}
	respond(w, doc.Status, "application/problem+json", body)
}

// respond writes a whole answer. contentType applies only if an error writer has set none.
func respond(w Writer, status int, contentType string, body []byte) {
	if h := w.Header(); h.Get("Content-Type") == "" {
		h.Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:errcheck // a write fails only if the client has left
}
