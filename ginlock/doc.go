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
// There are three ways to bind rules to routes, and they may be mixed:
//
//   - [Guard.Handle] replaces r.Handle. It compiles its rule at once, for its own route, and returns the problems.
//   - [Guard.Handler] is in the chain of a route or group. It learns its route with the first request, and its
//     rules are compiled then.
//   - [Guard.Middleware] takes a set, from a rule file or from Go, whose rules name their routes.
//
// A route is a method and a path as registered, including the base path of its group: the path that
// [gin.Context.FullPath] returns. Call [Guard.Check] after all routes are registered and before the server starts.
// It returns every problem of the rules of Handle and Middleware, and the rules of Handler that fit no route at
// all. A route with a broken rule answers 500 and never runs its handler.
//
// Several rules in one place need names. Their locks are taken in order and freed in reverse. Routes that take the
// same locks in opposite orders wait for each other until their wait times end; rules with several Keys do not. If
// a guard meets a request that it guards already, it does nothing a second time. Another guard with a rule of the
// same name on the same route is a mistake, and the answer is 500.
//
// The route of a request is the route that gin has matched. The method of the request does not decide, because a
// middleware before the guard may have changed it (X-HTTP-Method-Override) while the handler is still that
// of the matched route. Register the routes before the first request. In one case the route cannot be known: one
// function serves several methods of a path, and the method of the request is none of them. The answer is then
// 500, and observers are warned once for the path.
//
// Package keyexpr documents the variables of keys and conditions: path, query, header, cookie, form, body, method,
// route, client_ip, and the variables that [WithVariable] registers. A path value is the value that gin's router
// returns, decoded once: the same text as [gin.Context.Param]. A cookie is decoded like [gin.Context.Cookie], so
// that a client cannot spell one value in several ways. client_ip is [gin.Context.ClientIP], and as trustworthy as
// the trusted proxies of the engine. By gin's default all addresses are trusted, so that any client chooses its
// own address by a header. Call engine.SetTrustedProxies before you lock by client_ip; Check warns of it.
//
// # Rule files
//
//	rules, err := ruleset.Watch("locks.yaml")
//	…
//	r.Use(guard.Middleware(rules))
//	…
//	err = guard.Check(r)
//
// Check compares the file with the routes. A rule that matches no route is an error that names the nearest route,
// unless the file's unmatched says otherwise. With uncovered: error, a route that may change something and has
// neither a rule nor `none: true` is an error, too.
//
// A reload compiles the new rules for every route of the engines that Check was given, and changes them all at
// once. The guard refuses a reload that Check would not accept, and keeps the old rules. So call Check even if you
// know that the rules are right; otherwise a mistake in a later file shows with the first request that it breaks.
// A request ends under the rules with which it began. disabled and dry_run act on the next request. Rules of
// Handler and Handle belong to the program and are never reloaded.
//
// A guard stays subscribed to its Live set: make both once per process. Closing the Live set ends its reloads.
// [Guard.WriteRoutes] writes the names that the rules of a file may use, so that `interlock check` judges the file
// without the program.
//
// # Place in the chain
//
// Put the guard after recovery, tracing, logging, compression and authentication, and before anything that opens a
// transaction, so that the lock outlives it. A rule that reads a registered variable which authentication has not
// set yet is answered with 500, whatever its strategies say.
//
// gin puts a middleware on the chains of the routes that are registered after Use, below its group. Other routes
// run unlocked. [Guard.Check] reads the chains, and reports a rule of a route whose chain lacks its Middleware. It
// sees only engines that it is given, and no Middleware that another handler calls. A program without Check can
// prove it with a test of the engine: while redistest.Server.Take holds the lock for another holder, the route has
// to answer 409. Or call [core.MustHold] in the handler, with c.Request.Context(): it panics without the lock,
// even if a rule is disabled.
//
// A timeout inside the guard, which answers while the handler goes on, frees the lock under that work. Put the
// timeout before the guard, or let the work take the lock along with [core.Hold.Handover].
//
// # The end of a wait
//
// A wait ends in time for an answer: before the deadline of the request's context, and before the WriteTimeout of
// the server would cut the answer off, over HTTP/1.1 and HTTP/2. The guard keeps a tenth of the remaining time, and
// at least 50 ms, for the answer or for the handler. If no time remains, the guard makes one attempt, which takes
// up to the backend timeout of the lock client while Redis is silent.
//
// net/http does not show when its clock began, so WriteTimeout counts from the moment when the first guard saw the
// request. The time that middlewares before the guard took comes on top of it: put a guard before slow middlewares,
// or choose wait times that leave room. The guard cannot see a deadline that a handler or a middleware sets with
// [http.ResponseController.SetWriteDeadline]; WriteTimeout counts even then.
//
// # Timeouts
//
// A timeout outside the guard has to leave gin's context to the handlers until they have returned. A deadline in
// the request's context, the server's WriteTimeout, and [http.TimeoutHandler] around the engine do. gin-contrib/timeout
// does not: it answers and returns, and the engine gives the context, with which the handlers still run, to
// another request. The guard notices that. It no longer touches the context and runs no handler with it, but gin
// itself goes on with the chain, and [Hold] of such a context belongs to another request. Do not put such a
// timeout around a route that may wait longer than the timeout.
//
// # What a handler sees
//
// The handler runs once, under the locks of all rules, or not at all. It runs without its lock only if a rule says
// so: disabled, dry run, a condition that is false, strategy proceed. While it runs, c.Request.Context() carries
// the holds. That context ends when a hold is lost, with core.ErrLost as its cause, or with core.ErrClosed if a
// shutdown does not wait for the handler. Afterwards the guard puts the context of the request back.
//
// A nested Acquire of the same lock re-enters, with c.Request.Context() and with c itself, whether or not the
// engine has ContextWithFallback. Only the former ends with the lock or the client. The same holds if a handler
// has the request served again by engine.HandleContext, which clears everything that gin's context knows. The
// request stays under its locks, and takes the locks of the guards on its new way, even the locks of the same
// guard for another order. There [core.Held] and [core.MustHold] find the locks with c.Request.Context() only, and the
// answer bypasses a [WithBuffer] around it. [Hold] returns the hold, to release it early, to hand it over, or for
// its fencing token.
//
// The guard attempts to take the lock before it reads a body that the key does not use. If another caller holds
// the lock, a request over HTTP/1 reads its body before it waits, up to [WithMaxBody], because net/http notices
// only then that its client has left. A handler that answers while its client still sends therefore needs HTTP/2,
// or a rule that does not wait. The handler and gin's binders still get the whole body. The handler reads the rest
// of the body while it holds the lock: set a limit of the server (http.Server.ReadTimeout), or a slow client
// prolongs the hold.
//
// All requests that wait under one guard hold at most 64 MiB of bodies. Beyond that, a request waits with its body
// unread, and the guard notices at the end of the wait that its client has left. A request whose key uses the body
// is answered as an overload.
//
// The guard decides everything that it knows without the body before it reads the body: conditions and parts of
// keys that do not use it, its type and announced length, too many waiters, a Redis that is known to be down. Such
// an answer does not wait for the body either. A body that has not arrived within 50 ms costs an HTTP/1 client its
// connection.
//
// If a middleware replaces the body of a request, that body counts, whatever the length of the request says. If it
// does so after ShouldBindBodyWith, there are two bodies, and a handler may read either. A key that uses the body
// then answers 500, and c.Errors says so.
//
// A handler has given up if its lock was lost and it then returns without an answer, or adds the error of its
// context to c.Errors. The client gets the status of a lost lock. A handler that answers keeps its answer, unless
// the rule says on_lost: fail, for which its route needs [WithBuffer]. The headers that handlers have set go with
// the answer, including cookies and trailers. Headers of middlewares outside stay.
//
// A debounce window begins after a success: a status of 2xx, or 303, with no error added to c.Errors. Other
// redirections send a form back or ask for a login. A handler that succeeds without having done its work calls
// [aspect.CancelDebounce], with c or the request's context. HEAD, OPTIONS and TRACE begin no window under a rule
// that is for any method, such as a rule of Handler.
//
// A CORS preflight passes the guard, unless a rule names OPTIONS, so a handler of Any must not do its work for
// OPTIONS. The lock of a WebSocket, of server-sent events, or of another long response is held until the handler
// returns.
//
// # What a client sees
//
// Strategy error answers with an RFC 9457 problem document and, if a retry makes sense, Retry-After in whole
// seconds; see [WithErrorWriter]. skip answers 204, and null_response 200 with null or the rule's response. The
// header [failpolicy.StatusHeader] distinguishes both from an answer of the handler. A handler that runs unlocked
// under strategy proceed has that header too. For a client that has left, c.Writer.Status, and so the access log,
// says 499. That status is never sent. The guard sends 503 without a body, because some clients still read: those
// that closed only their own side of the connection, and those whose request the server itself cancelled. No
// answer contains a key, an owner or a text of Redis.
//
// An answer of the guard has Cache-Control: no-store. The guard removes the headers of middlewares outside that
// describe the answer of the handler, such as ETag, Expires and all Content- headers. CORS, Vary, security
// headers, request ids and cookies stay. So does Content-Encoding beside Vary: Accept-Encoding, because a
// middleware that compresses set it.
//
// The guard adds refusals with a status of 500 and more to c.Errors, for the logger: as [*aspect.RefusedError],
// whose text is safe to show to clients, or, if the program is at fault, as a text that says what to change. It
// also adds requests that yield no key, with the reason as the error's Meta, which gin.Logger prints.
//
// An answer of the guard is the only one. The guard drops everything that middlewares outside write through
// c.Writer after it. gin.ErrorLogger, for example, answers for every error in c.Errors. The guard also drops it
// after an answer of a handler whose lock was lost, if it was too late to take that answer back. An application
// whose own middleware answers for errors gives an error writer that writes nothing; see [WithErrorWriter].
//
// # The end of a response
//
// A small response leaves when the handlers have returned, after the locks were freed. A flushed response, or a
// response larger than the buffers of net/http, begins to leave before that. A client that sends its next request
// when it sees the response can then meet its own lock. For such clients let rules wait a little, or use
// [WithBuffer], which sends the response when the locks are free.
//
// # Shutdown
//
// Shut down the server first (http.Server.Shutdown), then the Live set and the lock client (Close), then the Redis
// client. The guard has no goroutine and needs no Close.
//
// A [Guard] and its handlers are safe for concurrent use.
package ginlock
