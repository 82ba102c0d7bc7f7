// Package aspect turns rules into locks around a handler. The adapters for Gin, net/http, gRPC, Connect and plain
// functions ([Wrap]) are built on it. An adapter for a queue, which calls handlers by name, is a [MessageGuard] and the
// translation of its [Outcome]. An adapter for another framework implements [Call], describes its endpoints to
// a [Registry] with an [Adapter], and translates the [Outcome] of [Point.Run]. Package adaptertest tests such an
// adapter, and examples/adapters/README.md shows how to write one. Package httpcall contains the code that only the HTTP
// adapters of this module need. Its API is not stable.
//
// # Functions
//
// [Wrap] puts a rule around a function. In the key, the variable in is the argument, with Go's field names:
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
// If the lock is not acquired, the error is a [*RefusedError]. Strategies skip and null_response return the zero value
// and no error. A function with another signature, such as a variadic function, goes into a closure with this
// signature.
//
// A rule file (package ruleset) names a function with func:
//
//	rules:
//	  - func: close-day
//	    key: close-day
//	    on_busy: skip
//	    wait_time: none
//
// and the program wraps it under that name. A field that the file sets replaces the field of the rule given to Wrap:
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
// The context of the function carries the lock and is canceled when the lock is lost. A call that bypasses the wrapped
// function has no lock; [core.MustHold] in the function detects that. [Aspect.Suspend] is the kill switch: from then on
// every handler runs without its lock and is counted. [Of] returns the aspect of the Lock functions of the adapters, such
// as ginlock.Lock.
//
// # Contract
//
// For each rule in order, Run evaluates the condition and the key (once) and takes the lock. Then it runs the handler
// with a context that carries the holds and is canceled when one of them is lost. It releases the locks in reverse
// order, even if the request is canceled. Finally it applies the strategy and notifies the observers.
//
//   - Before it asks for variables that arrive late ([Site].Late), such as the body of a request, Run decides
//     everything that does not depend on them. It prepares a call for a wait (BeforeWait of a [Call]) only if there is
//     a holder to wait for.
//   - The handler runs at most once. It runs without its locks only after [Aspect.Suspend], or if a rule says so:
//     disabled, dry run, a condition that is false, strategy proceed.
//   - Run returns the error of the handler untouched. A failed release never replaces it. A panic or [runtime.Goexit]
//     releases the locks and then continues.
//   - If a rule refuses the call, Run releases the locks of the rules before it.
//   - The wait ends before the caller's deadline, so that the answer is "busy" and not a bare deadline. It also ends
//     before the time by which the call has to be answered (AnswerBy of a [Call]).
//   - A lock that is lost while its handler runs is reported as lost, even if the handler returns the cancellation that
//     the loss caused.
//   - No part of an [Outcome] that is for the client contains a key, an owner or an answer of Redis.
//
// An [Aspect] and a [Point] are safe for concurrent use.
package aspect

// Data flows one way through the package. A compiler (compile.go) turns a rule and its Site into a compiled rule, which
// depends on no call. A Point holds the compiled rules of one endpoint. A run takes one call through them: each rule is
// a step, from the condition to the lock, and run.execute shows the order. A Table holds the points of one set. A
// Registry holds all tables, and an audit checks them and their reloads. Aspect is on top of all of them, and all share
// its environment, which depends on none of them.
