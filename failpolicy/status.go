package failpolicy

import (
	"errors"
	"fmt"
)

// Domain is the domain of the gRPC ErrorInfo detail that accompanies every
// refusal.
const Domain = "interlock"

// Status is what a client sees, as a pair: one for each transport. A zero half is
// "not set" and leaves the default of its cause.
type Status struct {
	HTTP int  // 400 to 599
	GRPC Code // not OK
}

// problems returns the problems of the halves that are set.
func (s Status) problems() []error {
	var errs []error
	if s.HTTP != 0 && (s.HTTP < 400 || s.HTTP > 599) {
		errs = append(errs, fmt.Errorf("http status %d is not an error: write one of 400 to 599, such as 409", s.HTTP))
	}
	if s.GRPC > codeUnauthenticated {
		errs = append(errs, fmt.Errorf("grpc code %d does not exist: write one of 1 (CANCELLED) to %d (UNAUTHENTICATED), such as %d (ABORTED)", uint32(s.GRPC), uint32(codeUnauthenticated), uint32(codeAborted)))
	}
	return errs
}

// over lays the halves that are set over base.
func (s Status) over(base Status) Status {
	if s.HTTP != 0 {
		base.HTTP = s.HTTP
	}
	if s.GRPC != codeOK {
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
