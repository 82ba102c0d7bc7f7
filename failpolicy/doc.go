// Package failpolicy defines what happens when a lock is not acquired: the causes, the
// strategies that answer them, and the statuses that a client sees.
//
// It contains words, tables and pure functions, so that a rule means the same with every
// transport. It runs nothing, keeps no state and imports only the standard library. All functions
// are safe for concurrent use.
//
// # Causes
//
// A rule has a strategy for each of the first five causes. Busy and debounced share OnBusy.
//
//	cause      what happened                          HTTP  gRPC                strategy    hint when to retry
//	busy       taken for the whole wait time          409   ABORTED             OnBusy      1 to 5 s
//	debounced  inside a debounce window               429   RESOURCE_EXHAUSTED  OnBusy      the rest of the window
//	backend    Redis cannot answer                    503   UNAVAILABLE         OnBackend   1 to 2 s
//	key        the request yields no key              400   INVALID_ARGUMENT    OnKey       none
//	overload   too many calls already wait            429   RESOURCE_EXHAUSTED  OnOverload  1 to 5 s
//	lost       the lock was lost in the handler       500   INTERNAL            no          none: the outcome is unknown
//	canceled   the caller went away                   0     CANCELLED           no          none
//	deadline   the caller's deadline has passed       504   DEADLINE_EXCEEDED   no          none
//
// Status 0 means that nothing is sent. A busy semaphore is 429, RESOURCE_EXHAUSTED. Cause key
// is 413 for a body that is too large, and 415 for a body of another content type.
//
// A mistake of the program is answered with 500, whatever the rule says. For example, the program did not set
// or could not compute a registered variable, or the call already holds the name as a lock of another kind. A rule
// changes statuses with its Status. Its Message replaces the text of every cause.
//
// Each cause has a [Cause.Type] for problem documents (RFC 9457), and a [Cause.Reason], such as
// LOCK_BUSY, for the ErrorInfo of gRPC. The type is an identifier, not a page to open. Both are
// stable.
//
// # Strategies
//
// [Strategy] has the table of strategies. NullResponse answers 200 to a request that did nothing. It suits a
// cache refresh but not a payment. The effect of a loss on the running handler has its own type, [OnLost]:
//
//	choice  what happens
//	cancel  the context ends; the result of a handler that still finishes is kept
//	ignore  the context goes on
//	fail    like cancel, but the client gets the error even if the handler finished
//
// Over HTTP, fail needs a buffered response: a rule with fail on a route without
// WithBuffer is an error at start-up. Bytes that were sent before the loss cannot be taken back: the
// beginning of a response that is larger than its buffer, a hijacked connection, the messages of a
// stream. The error then ends the stream.
//
// # Contract
//
// The default of every cause is [Error], which never runs the handler.
// [Proceed], which runs it without the lock, is never a default. No strategy answers a caller that
// went away, or whose deadline has passed. A text from this package
// never contains a key, an owner or an answer of Redis.
package failpolicy
