// Package ginlock takes the locks of declared rules around Gin handlers.
//
//	guard, err := ginlock.New(locks)
//	rule := ruleset.Rule{Key: "order:pay:#{path.id}"}
//	err = guard.Handle(r, http.MethodPost, "/orders/:id/pay", rule, pay)
//	…
//	err = guard.Check(r)
//
// # Rules
//
// There are three ways to bind rules to routes, which may be mixed:
// [Guard.Handler] in the chain of a route or group, [Guard.Handle] in place of
// r.Handle, and [Guard.Middleware] for a set, from a rule file or from Go, whose
// rules name their routes. A route is a method and a path as registered, the base
// path of its group included: what [gin.Context.FullPath] gives. Handle compiles its
// rule at once, against its own route, and returns what is wrong. Handler learns its
// route with the first request and is compiled then. Call [Guard.Check] when all routes
// are registered and before the server starts: it returns every problem of the
// rules of Handle and Middleware, but of Handler only what fits no route at all. A
// route with a broken rule answers 500 and never runs its handler.
//
// Several rules in one place need names. Their locks are taken in order and freed
// in reverse; routes that take the same locks in opposite orders wait for each other
// until their wait times end, which rules with several Keys do not. A guard that
// meets a request which it guards already does nothing a second time; another guard
// with a rule of the same name on the same route is a mistake and answers 500.
//
// The route of a request is the one that gin has matched, not what its method says by
// now: a middleware before the guard may have changed that (X-HTTP-Method-Override),
// and the handler that runs is still that of the route. Register the routes before the
// first request. Only where one function serves several methods of a path, and the
// method is none of them any more, the route cannot be known: the answer is 500, and
// observers are warned once for the path.
//
// Package keyexpr documents the variables of keys and conditions: path, query,
// header, cookie, form, body, method, route, client_ip, and what [WithVariable]
// registers. A path value is what gin's router hands over, decoded once: the same
// text as [gin.Context.Param]. A cookie is decoded as by [gin.Context.Cookie], so
// that a client cannot spell one value in several ways. client_ip is
// [gin.Context.ClientIP], and as trustworthy as the engine's trusted proxies: by gin's
// default all addresses are such, so that any client chooses its own by a header. Call
// engine.SetTrustedProxies before you lock by client_ip; Check warns of it.
//
// # Rule files
//
//	rules, err := ruleset.Watch("locks.yaml")
//	…
//	r.Use(guard.Middleware(rules))
//	…
//	err = guard.Check(r)
//
// Check compares the file with the routes: a rule that matches none is an error, with
// the nearest route, unless the file's unmatched says otherwise; with uncovered: error,
// so is a route that may change something and has neither a rule nor `none: true`.
//
// A reload compiles the new rules for every route of the engines that Check was given,
// and changes them all at once. If Check would not accept them, it is refused, and the
// old rules stay: call Check even where the rules are known to be right, or a mistake
// in a later file shows with the first request that it breaks. A request ends under the
// rules that it began with; disabled and dry_run act on the next one. Rules of Handler
// and Handle are the program's own and never reloaded.
//
// A guard stays subscribed to its Live set: make both once per process. Close of the
// Live set ends its reloads. [Guard.WriteRoutes] writes down what the rules of a file
// may refer to, so that `interlock check` judges it without the program.
//
// # Place in the chain
//
// After recovery, tracing, logging, compression and authentication; before anything that
// opens a transaction, so that the lock outlives it. A rule that reads a registered variable
// which authentication has not set yet is answered with 500, whatever its strategies say.
//
// gin puts a middleware on the chains of the routes that are registered after Use, below its
// group. Others run unlocked: [Guard.Check] reads the chains, and has an error for a rule of a
// route without its Middleware. It sees only engines that it is given, and no Middleware that
// another handler calls. A program without Check may let a test of the engine show it: while
// redistest.Server.Take has the lock for another holder, the route has to answer 409. Or call
// [core.MustHold] in the handler, with c.Request.Context(): it panics without the lock, also
// where a rule is disabled.
//
// A timeout inside the guard, which answers while the handler goes on, frees the lock under
// that work: put the timeout before the guard, or let the work take the lock along with
// [core.Hold.Handover].
//
// # The end of a wait
//
// A wait ends in time for an answer: before the deadline of the request's context, and
// before the WriteTimeout of the server would cut the answer off, over HTTP/1.1 and
// HTTP/2. A tenth of the time that is left, and at least 50 ms, is kept for the answer,
// or for the handler. Where nothing remains there is one attempt, which takes up to the
// backend timeout of the lock client while Redis is silent.
//
// net/http does not tell when its clock began, so WriteTimeout counts from when the
// first guard saw the request. What middlewares before it took is kept time, too: let a
// guard come before what takes long, or choose wait times that leave room. A deadline
// that a handler or a middleware sets with [http.ResponseController.SetWriteDeadline]
// cannot be seen; WriteTimeout counts all the same.
//
// # Timeouts
//
// A timeout outside the guard has to leave gin's context to the handlers until they have returned:
// a deadline in the request's context, the server's WriteTimeout, and [http.TimeoutHandler] around
// the engine do. gin-contrib/timeout does not: it answers and returns, and the engine gives the
// context, with which the handlers still run, to another request. The guard notices that, touches
// the context no more and runs no handler with it, but gin itself goes on with the chain, and
// [Hold] of such a context is another request's: do not put it around a route that may wait for
// longer than its timeout.
//
// # What a handler sees
//
// It runs once, under the locks of all rules, or not at all. Without its lock it
// runs only where a rule says so: disabled, dry run, a condition that is false,
// strategy proceed. While it runs, c.Request.Context() carries the holds and ends
// when one is lost, with core.ErrLost as its cause, or with core.ErrClosed when a shutdown
// does not wait for it; afterwards the context of the
// request is put back. A nested Acquire of the same lock re-enters, with
// c.Request.Context() and with c itself, whether or not the engine has
// ContextWithFallback; but only the former ends with the lock or the client. That holds
// for a request, too, that a handler has served again by engine.HandleContext, which
// clears all that gin's context knows: the request stays under its locks, and takes those
// of the guards that it meets on its new way, be it the same guard for another order.
// There [core.Held] and [core.MustHold] find them with c.Request.Context() only, and
// the answer goes past a [WithBuffer] around it.
// [Hold] gives the hold, to release it early, to hand it over, or for its fencing
// token.
//
// The guard attempts to take the lock before it reads a body that the key does not use. Where the
// lock is taken, a request over HTTP/1 reads its body before it waits, up to [WithMaxBody], because
// net/http does not notice that a client left while its body is unread; a handler that answers
// while its client still sends needs HTTP/2, or a rule that does not wait. The handler and gin's
// binders still get all of a body. The handler reads the rest of the body while it holds the
// lock: set a limit of the server (http.Server.ReadTimeout), or a slow client prolongs the hold.
//
// All requests that wait under one guard hold 64 MiB of bodies at most. Beyond that, a request
// waits without having read its body, and a client that leaves is noticed at the end of the wait;
// one whose key uses the body is answered as an overload.
//
// What is known without the body is decided before it is read: conditions and parts
// of keys that do not use it, its type and announced length, too many waiters, a Redis
// that is known to be down. Such an answer does not wait for the body either: one that
// is not there within 50 ms costs an HTTP/1 client its connection.
//
// A body that a middleware puts into the request counts, whatever its length says. One
// put in after ShouldBindBodyWith leaves two, of which a handler may read either: a key
// that uses the body then answers 500, and says so in c.Errors.
//
// A handler whose lock was lost and that then returns without an answer, or adds
// the error of its context to c.Errors, has given up: the client gets the status
// of a lost lock. A handler that answers keeps its answer, unless the rule says
// on_lost: fail, for which its route needs [WithBuffer]. The headers
// that handlers have set go with the answer, cookies and trailers among them; headers of
// middlewares outside stay as they were.
//
// A debounce window begins after a success: a status of 2xx, or 303, and nothing added
// to c.Errors. Other redirections send a form back or ask for a login. A handler that
// succeeds without having done its work calls [aspect.CancelDebounce], with c or the
// request's context. HEAD, OPTIONS and TRACE begin no window under a rule that is for any
// method, such as one of Handler.
//
// A CORS preflight passes the guard, unless a rule names OPTIONS: a handler of Any must not
// do its work then. The lock of a WebSocket, of server-sent events, or of another long
// response is held until the handler returns.
//
// # What a client sees
//
// Strategy error answers with an RFC 9457 problem document and, where a retry is
// sensible, Retry-After in whole seconds; see [WithErrorWriter]. skip answers 204
// and null_response 200 with null or the rule's response, both told from a real
// answer by the header [failpolicy.StatusHeader]. A handler that runs unlocked under strategy
// proceed has it too. For a client that is gone c.Writer.Status, and so the access log,
// says 499. That is no status to send: one who can still read, because it closed only
// its own side of the connection or because the server itself cancelled the request,
// gets 503 without a body. No answer contains a key, an owner or a text of Redis.
//
// An answer of the guard has Cache-Control: no-store. Of the headers that middlewares outside have
// set, the ones that describe the handler's answer are removed, such as ETag, Expires and all Content-
// headers; CORS, Vary, security headers, request ids and cookies stay. So does Content-Encoding
// beside Vary: Accept-Encoding, because a middleware that compresses set it.
//
// Refusals with a status of 500 and more are added to c.Errors, for the logger:
// as [*aspect.RefusedError], whose text is fit for clients, or, where the program
// is at fault, as a text that says what to change. So are requests that yield no key, with
// the reason as the error's Meta, which gin.Logger prints.
//
// An answer of the guard is the only one. What middlewares outside write through
// c.Writer after it, such as gin.ErrorLogger, which answers for every error in
// c.Errors, is dropped; so it is after an answer of the handler whose lock was lost,
// when it was too late to take that back. An application whose own middleware answers
// for errors gives an error writer that writes nothing; see [WithErrorWriter].
//
// # The end of a response
//
// A small response leaves when the handlers have returned, after the locks were
// freed. A flushed one, or one larger than the buffers of net/http, begins to
// leave before: a client that sends its next request on seeing it can meet its own
// lock. Where clients do that, let rules wait a little, or use [WithBuffer], which
// sends the response when the locks are free.
//
// # Shutdown
//
// First the server (http.Server.Shutdown), then a Live set and the lock client (Close),
// then the Redis client. The guard has no goroutine and needs no Close.
//
// A [Guard] and its handlers are safe for concurrent use.
package ginlock
