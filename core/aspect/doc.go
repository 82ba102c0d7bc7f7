// Package aspect is the shared middle of every adapter: it turns rules into locks
// around a handler. Gin, gRPC and plain functions ([Wrap]) stand on it; an adapter
// for another framework implements [Call], keeps its endpoints in a [Registry], by an
// [Adapter], and translates the [Outcome] of [Point.Run]. Package adaptertest has its
// tests, and examples/adapters/README.md the way. What only the adapters of this module
// need for HTTP is in package httpcall, which is not stable.
//
// # Functions
//
// [Wrap] puts a rule around a function. Its key reads the argument as in, by its Go names:
//
//	locking, err := aspect.New(locks)
//	if err != nil {
//		return err
//	}
//	pay, err := aspect.Wrap(locking, ruleset.Rule{Name: "charge", Key: "order:pay:#{in.OrderID}"}, charge)
//	if err != nil {
//		return err
//	}
//	receipt, err := pay(ctx, payment)
//
// Where the lock is not acquired, the error is a [*RefusedError]; strategies skip and
// null_response give the zero value and no error. A variadic or another shape of function
// goes into a closure of this shape.
//
// A function gets its rule from a file (package ruleset) by its name there, as func:
//
//	rules:
//	  - func: close-day
//	    key: close-day
//	    on_busy: skip
//	    wait_time: none
//
// and in the program:
//
//	locking, err := aspect.New(locks, aspect.WithSet(rules))
//	if err != nil {
//		return err
//	}
//	run, err := aspect.Wrap(locking, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, closeDay)
//	if err != nil {
//		return err
//	}
//	if err := locking.Check(); err != nil { // each func: rule of the file has a function
//		return err
//	}
//	_, err = run(ctx, time.Now())
//
// The context that the function gets carries the lock and ends when it is lost. A call past
// the wrapped function has no lock: [core.MustHold] finds it. [Aspect.Suspend] is the kill
// switch: from then on everything runs without its lock, counted.
//
// # Contract
//
// Of Run, for each rule in order: the condition, the key (evaluated
// once), the lock; then the handler, with a context that carries the holds and
// ends when one is lost; then the releases in reverse order, which the end of the
// request cannot interrupt; then the strategy; then the observers.
//
//   - What is known without the variables that come late ([Site.Late]), such as the
//     body of a request, is decided before they are asked for; and what a call does
//     before it waits (BeforeWait of a [Call]) it does only when there is a holder to wait for.
//   - The handler runs at most once. Without its locks it runs only where a rule
//     says so: disabled, dry run, a condition that is false, strategy proceed.
//   - Its error is returned untouched. A failed release never replaces it. A panic
//     or [runtime.Goexit] releases and goes on.
//   - A rule whose lock is not acquired frees the locks of the rules before it.
//   - The wait ends before the caller's deadline, so that the answer is "busy" and
//     not a bare deadline; so it does before one for the answer (AnswerBy of a [Call]).
//   - A lock that is lost under its handler is reported as lost, also when the
//     handler returns the cancellation that the loss caused.
//   - Nothing in an [Outcome] that is meant for the client contains a key, an owner
//     or an answer of Redis.
//
// An [Aspect] and a [Point] are safe for concurrent use.
package aspect
