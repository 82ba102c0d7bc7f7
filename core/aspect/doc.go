// Package aspect is the shared middle of every adapter: it turns rules into locks
// around a handler. Gin, gRPC and plain functions ([Wrap]) stand on it; an adapter
// for another framework implements [Call], compiles a [Point] per endpoint at
// start-up and translates the [Outcome] of [Point.Run].
//
// Contract of Run, for each rule in order: the condition, the key (evaluated
// once), the lock; then the handler, with a context that carries the holds and
// ends when one is lost; then the releases in reverse order, which the end of the
// request cannot interrupt; then the strategy; then the observers.
//
//   - What is known without the variables that come late ([Site.Late]), such as the
//     body of a request, is decided before they are asked for; and what a call does
//     before it waits ([WaitPreparer]) it does only for a lock that may be had.
//   - The handler runs at most once. Without its locks it runs only where a rule
//     says so: disabled, dry run, a condition that is false, strategy proceed.
//   - Its error is returned untouched. A failed release never replaces it. A panic
//     or [runtime.Goexit] releases and goes on.
//   - A rule that is not had frees the locks of the rules before it.
//   - The wait ends before the caller's deadline, so that the answer is "busy" and
//     not a bare deadline.
//   - A lock that is lost under its handler is reported as lost, also when the
//     handler returns the cancellation that the loss caused.
//   - Nothing in an [Outcome] that is meant for the client contains a key, an owner
//     or an answer of Redis.
//
// An [Aspect] and a [Point] are safe for concurrent use.
package aspect
