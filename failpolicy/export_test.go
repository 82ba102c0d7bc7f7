package failpolicy

// The codes by name, for tests.
const (
	CodeCancelled       = codeCancelled
	CodeInvalidArgument = codeInvalidArgument
	CodeAborted         = codeAborted
	CodeInternal        = codeInternal
	CodeUnavailable     = codeUnavailable
	CodeDataLoss        = codeDataLoss
	CodeUnauthenticated = codeUnauthenticated
)
