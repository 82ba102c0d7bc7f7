package failpolicy

import (
	"errors"
	"fmt"
)

// Domain is the domain of the gRPC ErrorInfo detail that accompanies every
// refusal.
const Domain = "interlock"

// The reasons of the gRPC ErrorInfo detail, one per cause. They are stable:
// clients may compare them.
const (
	ReasonBusy      = "LOCK_BUSY"
	ReasonDebounced = "LOCK_DEBOUNCED"
	ReasonBackend   = "LOCK_BACKEND_UNAVAILABLE"
	ReasonKey       = "LOCK_KEY_INVALID"
	ReasonOverload  = "LOCK_OVERLOADED"
	ReasonLost      = "LOCK_LOST"
	ReasonCanceled  = "LOCK_CALLER_GONE"
	ReasonDeadline  = "LOCK_DEADLINE_EXCEEDED"
)

// The `type` members of the problem+json bodies (RFC 9457), one per cause. They
// are stable identifiers: clients may compare them, and need not fetch them.
const (
	typeBase      = "https://interlock-go.github.io/problems/"
	TypeBusy      = typeBase + "lock-busy"
	TypeDebounced = typeBase + "lock-debounced"
	TypeBackend   = typeBase + "lock-backend-unavailable"
	TypeKey       = typeBase + "lock-key-invalid"
	TypeOverload  = typeBase + "lock-overloaded"
	TypeLost      = typeBase + "lock-lost"
	TypeCanceled  = typeBase + "lock-caller-gone"
	TypeDeadline  = typeBase + "lock-deadline-exceeded"
)

// Status is what a client sees, as a pair: one for each transport. A zero half is
// "not set" and leaves the default of its cause.
type Status struct {
	HTTP int  // 400 to 599
	GRPC Code // not OK
}

// Validate checks the halves that are set.
func (s Status) Validate() error { return errors.Join(s.problems()...) }

func (s Status) problems() []error {
	var errs []error
	if s.HTTP != 0 && (s.HTTP < 400 || s.HTTP > 599) {
		errs = append(errs, fmt.Errorf("http status %d is not an error: write one of 400 to 599, such as 409", s.HTTP))
	}
	if s.GRPC > Unauthenticated {
		errs = append(errs, fmt.Errorf("grpc code %d does not exist: write one of 1 (CANCELLED) to %d (UNAUTHENTICATED), such as %d (ABORTED)", uint32(s.GRPC), uint32(Unauthenticated), uint32(Aborted)))
	}
	return errs
}

// over lays the halves that are set over base.
func (s Status) over(base Status) Status {
	if s.HTTP != 0 {
		base.HTTP = s.HTTP
	}
	if s.GRPC != OK {
		base.GRPC = s.GRPC
	}
	return base
}

// Statuses changes what a client sees, per cause. The zero value changes nothing.
// There is no entry for [Canceled]: nobody is there to see it.
type Statuses struct {
	Busy, Debounced, Backend, Key, Overload, Lost, Deadline Status
}

// Validate reports every unusable status, each with the cause it is given for.
func (s Statuses) Validate() error {
	var errs []error
	for _, c := range Causes() {
		if own := s.Of(c); own != nil {
			for _, err := range own.problems() {
				errs = append(errs, fmt.Errorf("%s: %w", c, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Status is what a client sees for a cause under these changes.
func (s Statuses) Status(c Cause) Status {
	if own := s.Of(c); own != nil {
		return own.over(c.Status())
	}
	return c.Status()
}

// Of is the change for one cause, to read or to set it; nil for [Canceled] and for an unknown
// cause.
func (s *Statuses) Of(c Cause) *Status {
	switch c {
	case Busy:
		return &s.Busy
	case Debounced:
		return &s.Debounced
	case Backend:
		return &s.Backend
	case Key:
		return &s.Key
	case Overload:
		return &s.Overload
	case Lost:
		return &s.Lost
	case Deadline:
		return &s.Deadline
	default:
		return nil
	}
}

// answer is a line of the documented table.
type answer struct {
	status             Status
	reason, typ, title string
}

// Status is the default status of the cause. Of [Canceled] the HTTP half is 0:
// nothing is written to a caller who is gone.
func (c Cause) Status() Status { return c.answer().status }

// Reason is the reason of the gRPC ErrorInfo detail, such as [ReasonBusy].
func (c Cause) Reason() string { return c.answer().reason }

// Type is the `type` of the problem+json body, such as [TypeBusy].
func (c Cause) Type() string { return c.answer().typ }

// Title is the `title` of the problem+json body and the message of the gRPC
// status: one short English sentence without details of the request.
func (c Cause) Title() string { return c.answer().title }

func (c Cause) answer() answer {
	switch c {
	case Busy:
		return answer{Status{409, Aborted}, ReasonBusy, TypeBusy, "Another request for the same resource is in progress"}
	case Debounced:
		return answer{Status{429, ResourceExhausted}, ReasonDebounced, TypeDebounced, "The same request was made a moment ago"}
	case Backend:
		return answer{Status{503, Unavailable}, ReasonBackend, TypeBackend, "Locking is temporarily unavailable"}
	case Key:
		return answer{Status{400, InvalidArgument}, ReasonKey, TypeKey, "The request does not identify the resource to lock"}
	case Overload:
		return answer{Status{429, ResourceExhausted}, ReasonOverload, TypeOverload, "Too many requests wait for the same resource"}
	case Lost:
		return answer{Status{500, Internal}, ReasonLost, TypeLost, "The lock was lost while the request ran; its outcome is unknown"}
	case Canceled:
		return answer{Status{0, Cancelled}, ReasonCanceled, TypeCanceled, "The caller went away"}
	case Deadline:
		return answer{Status{504, DeadlineExceeded}, ReasonDeadline, TypeDeadline, "The caller's deadline passed before the lock was free"}
	default:
		return answer{Status{500, Internal}, "LOCK_UNKNOWN", "about:blank", "The request could not be completed"}
	}
}
