// Package failpolicy says what happens when a lock is not had: the causes, the
// strategies that answer them, the statuses that a client sees, and when it makes
// sense to try again.
//
// It holds words, tables and pure functions, so that a rule means the same behind
// every transport: adapters ask [Policy.Decide] and translate the [Decision]. It
// runs nothing, keeps no state and imports only the standard library. All
// functions are safe for concurrent use.
//
// Contract: the default of every cause is [Error], which never runs the handler.
// [Proceed], which runs it without the lock, is never a default. A caller that
// went away or ran out of time is asked no strategy. A text from this package
// never contains a key, an owner or an answer of Redis.
package failpolicy
