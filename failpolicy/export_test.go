package failpolicy

// The codes that tests use.
const (
	CodeCancelled       = codeCancelled
	CodeInvalidArgument = codeInvalidArgument
	CodeAborted         = codeAborted
	CodeInternal        = codeInternal
	CodeUnavailable     = codeUnavailable
	CodeDataLoss        = codeDataLoss
	CodeUnauthenticated = codeUnauthenticated
)
