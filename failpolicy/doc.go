// Package failpolicy says what happens when a lock is not acquired: the causes, the
// strategies that answer them, and the statuses that a client sees.
//
// It holds words, tables and pure functions, so that a rule means the same behind
// every transport. It runs nothing, keeps no state and imports only the standard
// library. All functions are safe for concurrent use.
//
// # Causes
//
// A rule has one strategy for each of the first five; busy and debounced share OnBusy.
//
//	cause      what happened                          HTTP  gRPC                asks        hint when to retry
//	busy       taken for the whole wait time          409   ABORTED             OnBusy      1 to 5 s
//	debounced  inside a debounce window               429   RESOURCE_EXHAUSTED  OnBusy      the rest of the window
//	backend    Redis cannot tell                      503   UNAVAILABLE         OnBackend   1 to 2 s
//	key        the request yields no key              400   INVALID_ARGUMENT    OnKey       none
//	overload   too many callers wait already          429   RESOURCE_EXHAUSTED  OnOverload  1 to 5 s
//	lost       the lock ended under the handler       500   INTERNAL            no          none: the outcome is unknown
//	canceled   the caller is gone                     0     CANCELLED           no          none
//	deadline   the caller's deadline is over          504   DEADLINE_EXCEEDED   no          none
//
// Status 0 is that nothing is sent. A busy semaphore is 429, RESOURCE_EXHAUSTED. Cause key
// is 413 for a body that is too large and 415 for one of another content type. A value that
// the program should have set (a registered variable) and did not is 500, whatever the rule
// says, and so is a lock that the call cannot have for what it holds, such as two kinds on
// one name. A rule changes statuses with Status; its Message replaces the text of every
// cause.
//
// Each cause has a [Cause.Type] for problem documents (RFC 9457), which is an identifier and no
// page to open, and a [Cause.Reason], such as LOCK_BUSY, for the ErrorInfo of gRPC. Both are
// stable.
//
// # Strategies
//
// [Strategy] has the table. NullResponse answers 200 to a request that did nothing: good for a
// cache refresh; a payment should not use it. What a loss does to the running handler is another
// word, [OnLost]:
//
//	choice  what happens
//	cancel  the context ends; the result of a handler that finishes all the same is kept
//	ignore  the context goes on
//	fail    like cancel, but the client gets the error even if the handler finished
//
// Over HTTP, fail needs a response that is kept back: a rule that says fail for a route without
// WithBuffer is an error at start-up. Nothing that was sent before the loss can be taken back: the
// beginning of a response that is larger than its buffer, a hijacked connection, the messages of a
// stream. The error then ends the stream.
//
// # Contract
//
// The default of every cause is [Error], which never runs the handler.
// [Proceed], which runs it without the lock, is never a default. A caller that
// went away or ran out of time is asked no strategy. A text from this package
// never contains a key, an owner or an answer of Redis.
package failpolicy
