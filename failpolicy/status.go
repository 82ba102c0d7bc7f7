package failpolicy

import (
	"errors"
	"fmt"
)

// Statuses changes the status that a client sees, for each cause. The zero value changes nothing.
// It has no field for [Canceled], because a caller that went away sees no status.
type Statuses struct {
	Busy, Debounced, Backend, Key, Overload, Lost, Deadline Status
}

// Validate returns an error that joins every unusable status, with its cause.
func (s Statuses) Validate() error {
	var errs []error
	for _, c := range Causes() {
		if change := s.Of(c); change != nil {
			for _, err := range change.problems() {
				errs = append(errs, fmt.Errorf("%s: %w", c, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Status returns the status that a client sees for a cause under these changes.
func (s Statuses) Status(c Cause) Status {
	if change := s.Of(c); change != nil {
		return change.applyTo(c.Status())
	}
	return c.Status()
}

// Of returns the change for one cause, to read or to set it. It returns nil for [Canceled] and for an
// unknown cause.
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

// Domain is the domain of the gRPC ErrorInfo detail that accompanies every
// refusal.
const Domain = "interlock"

// TokenHeader is the header with the fencing token of the lock, as a decimal number. Adapters send it
// with their option WithTokenHeader.
const TokenHeader = "X-Lock-Token" //nolint:gosec // the name of a header; a fencing token is not a secret

// ReasonMisconfigured is the reason in the ErrorInfo of a method with a broken rule, and
// of a call that fails because of a mistake in the program.
const ReasonMisconfigured = "LOCK_MISCONFIGURED"
