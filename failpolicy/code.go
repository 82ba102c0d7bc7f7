package failpolicy

import "strconv"

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

// codeNames are the wire names, in the order of the numbers.
func codeNames() []string {
	return []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
}

// String is the code's wire name, such as "ABORTED", or "CODE(99)".
func (c Code) String() string {
	if c > codeUnauthenticated {
		return "CODE(" + strconv.FormatUint(uint64(c), 10) + ")"
	}
	return codeNames()[c]
}

// ParseCode reads a wire name such as "ABORTED". OK is refused: it is no error.
func ParseCode(name string) (Code, error) {
	names := codeNames()
	for i, n := range names[1:] {
		if n == name {
			return Code(i + 1), nil
		}
	}
	return codeOK, &UnknownWordError{What: "grpc code", Word: name, Known: names[1:], Suggestion: Nearest(name, names[1:])}
}
