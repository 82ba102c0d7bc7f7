package failpolicy

import (
	"fmt"
	"strconv"
)

// Code is a gRPC status code, with the numbers of google.golang.org/grpc/codes:
// failpolicy.Code(codes.Aborted) in a rule. Zero stands for "not set" in a [Status].
type Code uint32

const (
	codeOK Code = iota
	codeCancelled
	codeUnknown
	codeInvalidArgument
	codeDeadlineExceeded
	codeNotFound
	codeAlreadyExists
	codePermissionDenied
	codeResourceExhausted
	codeFailedPrecondition
	codeAborted
	codeOutOfRange
	codeUnimplemented
	codeInternal
	codeUnavailable
	codeDataLoss
	codeUnauthenticated
)

// codeNames returns the wire names, in the order of the numbers.
func codeNames() []string {
	return []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
}

// String returns the code's wire name, such as "ABORTED", or "CODE(99)" for an unknown code.
func (c Code) String() string {
	if c > codeUnauthenticated {
		return "CODE(" + strconv.FormatUint(uint64(c), 10) + ")"
	}
	return codeNames()[c]
}

// ParseCode parses a wire name such as "ABORTED". It refuses OK, which is not an error.
func ParseCode(name string) (Code, error) {
	names := codeNames()
	for i, n := range names[1:] {
		if n == name {
			return Code(i + 1), nil
		}
	}
	return codeOK, &UnknownWordError{What: "grpc code", Word: name, Known: names[1:], Suggestion: Nearest(name, names[1:])}
}

// Status is the status that a client sees, with one field for each transport. A zero field is not set:
// the default of the cause applies.
type Status struct {
	HTTP int  // 400 to 599
	GRPC Code // not OK
}

// problems returns the problems of the fields that are set.
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

// applyTo returns base with the fields that s sets.
func (s Status) applyTo(base Status) Status {
	if s.HTTP != 0 {
		base.HTTP = s.HTTP
	}
	if s.GRPC != codeOK {
		base.GRPC = s.GRPC
	}
	return base
}
