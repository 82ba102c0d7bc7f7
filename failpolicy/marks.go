package failpolicy

// StatusHeader is the header of HTTP, Connect and gRPC (there in lower case) by which a
// client tells an answer without the lock from a real one.
const StatusHeader = "X-Lock-Status"

// The values of [StatusHeader].
const (
	MarkSkipped  = "skipped"  // the handler did not run, by strategy skip
	MarkNull     = "null"     // the handler did not run, by strategy null_response
	MarkUnlocked = "unlocked" // the handler ran without the lock, by strategy proceed
)

// TokenHeader is the header that has the fencing token of the lock, as a decimal number,
// where an adapter's WithTokenHeader asks for it.
const TokenHeader = "X-Lock-Token" //nolint:gosec // the name of a header; a fencing token is no secret

// ReasonMisconfigured is the reason in the ErrorInfo of a method whose rule is broken, and
// of a call that the program itself has spoilt.
const ReasonMisconfigured = "LOCK_MISCONFIGURED"
