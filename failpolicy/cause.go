package failpolicy

import (
	"slices"
	"strings"
)

// Cause is the reason why a handler did not run under its lock to the end. It has few values, so
// it can be a metric label. The zero value means that the lock was acquired.
type Cause string

// The causes. A [Strategy] answers only the first five.
const (
	// Busy: another holder kept the lock for the whole wait time.
	Busy Cause = "busy"
	// Debounced: the call came inside a debounce window, or while the first call
	// still ran.
	Debounced Cause = "debounced"
	// Backend: Redis did not answer, or could not say whether the lock is free. The call does not
	// hold the lock, and whether another caller holds it is unknown.
	Backend Cause = "backend"
	// Key: the request yields no usable key.
	Key Cause = "key"
	// Overload: too many calls already wait.
	Overload Cause = "overload"

	// Lost: the lock was lost while its handler ran, or a shutdown did not wait for
	// the handler. The cause is reported if the rule asks for an error ([Fail]), or if the handler
	// gave up because of the loss. The effects of the handler until then remain.
	//
	// After the loss, a nested call of the handler that asks for any lock has this cause, too. The
	// handler of the nested call does not run, whatever the strategies of its rule are.
	Lost Cause = "lost"
	// Canceled: the caller went away, or the server canceled the request.
	Canceled Cause = "canceled"
	// Deadline: the caller's deadline has passed.
	Deadline Cause = "deadline"
)

// causes is the table of causes, as the package comment documents it. Causes with a strategy come first.
var causes = []answer{ //nolint:gochecknoglobals // a table that is only read
	{Busy, Status{409, codeAborted}, "LOCK_BUSY", "Another request for the same resource is in progress"},
	{Debounced, Status{429, codeResourceExhausted}, "LOCK_DEBOUNCED", "The same request was made a moment ago"},
	{Backend, Status{503, codeUnavailable}, "LOCK_BACKEND_UNAVAILABLE", "Locking is temporarily unavailable"},
	{Key, Status{400, codeInvalidArgument}, "LOCK_KEY_INVALID", "The request does not identify the resource to lock"},
	{Overload, Status{429, codeResourceExhausted}, "LOCK_OVERLOADED", "Too many requests wait for the same resource"},
	{Lost, Status{500, codeInternal}, "LOCK_LOST", "The lock was lost while the request ran; its outcome is unknown"},
	{Canceled, Status{0, codeCancelled}, "LOCK_CALLER_GONE", "The request was canceled before it had its lock"},
	{Deadline, Status{504, codeDeadlineExceeded}, "LOCK_DEADLINE_EXCEEDED", "The caller's deadline passed before the lock was free"},
}

// answer is a row of the table of causes.
type answer struct {
	cause         Cause
	status        Status
	reason, title string
}

func (c Cause) answer() answer {
	for i := range causes {
		if causes[i].cause == c {
			return causes[i]
		}
	}
	return answer{c, Status{500, codeInternal}, "LOCK_UNKNOWN", "The request could not be completed"}
}

// Causes lists every cause. Causes with a strategy come first.
func Causes() []Cause {
	list := make([]Cause, len(causes))
	for i := range causes {
		list[i] = causes[i].cause
	}
	return list
}

// AsksStrategy reports whether a strategy of the rule answers the cause.
// Every other cause has one fixed answer.
func (c Cause) AsksStrategy() bool {
	return slices.Contains([]Cause{Busy, Debounced, Backend, Key, Overload}, c)
}

// Status returns the default status of the cause. For [Canceled], HTTP is 0, because a caller that went away sees no
// status. In case it still reads, the HTTP adapters answer 503.
func (c Cause) Status() Status { return c.answer().status }

// Reason returns the reason of the gRPC ErrorInfo detail, such as LOCK_BUSY. It is stable: clients may
// compare it.
func (c Cause) Reason() string { return c.answer().reason }

// Type returns the `type` of the problem+json body (RFC 9457), such as
// https://interlock-go.github.io/problems/lock-busy. It is a stable identifier: clients may
// compare it and need not fetch it.
func (c Cause) Type() string {
	reason := c.Reason()
	if reason == "LOCK_UNKNOWN" {
		return "about:blank"
	}
	return "https://interlock-go.github.io/problems/" + strings.ToLower(strings.ReplaceAll(reason, "_", "-"))
}

// Title returns the `title` of the problem+json body and the message of the gRPC
// status: one short English sentence without details of the request.
func (c Cause) Title() string { return c.answer().title }
