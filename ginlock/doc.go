// Package ginlock runs gin handlers under locks. [Lock] puts one lock on a route:
//
//	r.POST("/orders/:id/pay", ginlock.Lock(locks, "order:pay:#{path.id}"), pay)
//	…
//	err := ginlock.Check(locks, r)
//
// A [Guard] has options, several rules for a route, and rule files:
//
//	guard, err := ginlock.New(locks)
//	rule := ruleset.Rule{Key: "order:pay:#{path.id}"}
//	err = guard.Handle(r, http.MethodPost, "/orders/:id/pay", rule, pay)
//	…
//	err = guard.Check(r)
//
// # Rules
//
// There are four ways to bind rules to routes. They may be mixed: a request then takes the locks of all rules on its
// route, and these rules need different names.
//
//   - [Lock] returns a handler for the chain of a route or group, with one rule. It needs no guard and panics if the rule
//     is wrong.
//   - [Guard.Handle] replaces r.Handle. It compiles its rule at once, for its own route, and returns the problems.
//   - [Guard.Handler] returns a handler for the chain of a route or group. The guard compiles its rules in Check, and
//     otherwise at the first request.
//   - [Guard.Middleware] takes a set, from a rule file or from Go, whose rules name their routes.
//
// A route is a method and a path as registered, including the base path of its group: the path that
// [gin.Context.FullPath] returns. Call [Guard.Check] after all routes are registered and before the server starts. It
// returns every problem of the rules, including the rules of [Lock]. A program without a guard calls [Check] instead. A
// route with a broken rule answers 500 and never runs its handler.
//
// If there are several rules in one place, each needs a name. Their locks are taken in order and freed in reverse.
// Requests that take the same locks in opposite orders wait for each other until a wait times out. The Keys of one
// rule are always taken in the same order. A guard does nothing for a request that it already guards. Another guard
// with a rule of the same name on the same route is a mistake, and the answer is 500.
//
// The route of a request is the route that gin matched. The method of the request does not matter, because a middleware
// before the guard may have changed it (X-HTTP-Method-Override), while gin still runs the handler of the matched route.
// Register the routes before the first request. In one case the guard cannot determine the route: one function serves
// several methods of a path, and the method of the request is none of them. The guard then answers 500 and warns
// observers once for the path.
//
// Package keyexpr documents the variables of keys and conditions: path, query, header, cookie, form, body, method,
// route, client_ip, and the variables that [WithVariable] registers. A path value is the value that gin's router
// returns, decoded once: the same string as [gin.Context.Param]. A cookie is decoded as [gin.Context.Cookie] does, so
// that a client cannot spell one value in several ways. client_ip is [gin.Context.ClientIP], and only as trustworthy as
// the trusted proxies of the engine. By default gin trusts all addresses, so any client can choose its address with a
// header. Call engine.SetTrustedProxies before you lock by client_ip; Check warns if you did not.
//
// # The key and the handler read the same value
//
// The client fills the query, the form, the cookies and the body at the same time, so a lock protects an order only if the
// handler reads its number from the place that the key names:
//
//	path.id       c.Param, c.ShouldBindUri
//	query.id      c.Query, c.ShouldBindQuery, and under GET c.ShouldBind
//	form.id       c.PostForm, c.ShouldBindWith with binding.FormPost or binding.FormMultipart, and c.ShouldBind
//	cookie.id     c.Cookie
//	body.id       c.ShouldBindJSON, c.ShouldBindBodyWithJSON
//
// c.ShouldBind and c.Bind choose the place by the method and the Content-Type, which the client chooses. Beside a key over
// the query or the body, they may read another order than the key names. Where a handler merges places, check the lock for
// the value that it uses. MustHold panics if the request holds another lock:
//
//	core.MustHold(c.Request.Context(), "order:pay:"+order)
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
// unless the file's unmatched says otherwise. With uncovered: error, a route that may modify data and has
// neither a rule nor `none: true` is an error, too.
//
// A reload compiles the new rules for every route of the engines given to Check and replaces the rules of all routes
// at once. The guard refuses a reload that Check would not accept and keeps the old rules. So call Check even if you
// know that the rules are right; otherwise a mistake in a later file shows only with the first request that it breaks.
// A request runs to its end under the rules with which it began. disabled and dry_run take effect with the next
// request. Rules of Lock, Handler and Handle belong to the program and are never reloaded.
//
// A guard stays subscribed to its Live set, so create both once per process. Closing the Live set stops its reloads.
// [Guard.WriteRoutes] writes the names that the rules of a file may use, so that `interlock check` can check the file
// without the program.
//
// # Place in the chain
//
// Put the guard after recovery, tracing, logging, compression and authentication, and before anything that opens a
// transaction. The lock then outlives the transaction, and requests that wait hold no connection of a pool that the holder
// may need. If a rule reads a registered variable that authentication
// has not set yet, the guard answers 500, whatever the strategies of the rule.
//
// gin puts a middleware on the chains of the routes that are registered after Use, below its group. Other routes
// run unlocked. [Guard.Check] reads the chains and reports a rule of a route whose chain lacks its Middleware. It
// sees only the engines that it is given, and no Middleware that another handler calls. A program without Check can
// prove with a test of the engine that a route is guarded: while redistest.Server.Take holds the lock for another
// holder, the route has to answer 409. Or call [core.MustHold] in the handler, with c.Request.Context(): it panics
// without the lock, even if a rule is disabled.
//
// If a timeout inside the guard answers while the handler continues, the lock is released during that work. Put the
// timeout before the guard, or hand the lock over to the work with [core.Hold.Handover].
//
// # The end of a wait
//
// A wait ends in time for an answer: before the deadline of the request's context, and before the server's
// WriteTimeout would cut the answer off (in HTTP/1.1 and HTTP/2). The guard reserves a tenth of the remaining time,
// and at least 50 ms, for the answer or for the handler. If no time remains, the guard attempts to take the lock once.
// While Redis does not answer, that attempt takes up to the backend timeout of the lock client.
//
// net/http does not expose when its WriteTimeout started, so the guard counts it from the moment the first guard
// receives the request. Time spent in middlewares before the guard is not counted, so it shortens the reserved time.
// Put a guard before slow middlewares, or choose wait times that leave room. The guard cannot see a deadline that a
// handler or a middleware sets with [http.ResponseController.SetWriteDeadline]; it uses WriteTimeout even then.
//
// # Timeouts
//
// A timeout outside the guard has to leave gin's context to the handlers until they have returned. A deadline in the
// request's context, the server's WriteTimeout, and [http.TimeoutHandler] around the engine do. gin-contrib/timeout
// does not: its middleware answers and returns, and the engine reuses the context for another request while the
// handlers still use it. The guard notices this: it neither touches the context again nor runs a handler with it. But
// gin itself continues the chain, and [Hold] then returns the lock of the other request. Do not put such a timeout
// around a route that may wait longer than the timeout.
//
// # What a handler sees
//
// The handler runs once, under the locks of all rules, or not at all. It runs without its lock only after
// [aspect.Aspect.Suspend], or if a rule says so: disabled, dry run, a condition that is false, strategy proceed. While it
// runs, c.Request.Context() carries the holds. That context is canceled when a hold is lost, with [core.ErrLost] as its
// cause, or with [core.ErrClosed] if a shutdown does not wait for the handler. Afterwards the guard restores the context
// of the request.
//
// A nested Acquire of the same lock re-enters it, with c.Request.Context() and with c itself, whether or not the
// engine has ContextWithFallback. Only c.Request.Context() is canceled when the lock is lost or the client leaves.
//
// A handler may pass the request to engine.HandleContext, which clears all values in gin's context. A nested Acquire
// still re-enters with either context. The request keeps its locks and takes the locks of the guards on its new chain,
// even other locks of the same guard. On that chain, [core.Held] and [core.MustHold] find the locks only with
// c.Request.Context(), and the answer bypasses the [WithBuffer] of the outer guard.
//
// [Hold] returns the hold, to release it early, to hand it over, or for its fencing token.
//
// The guard attempts to take the lock before it reads a body that the key does not use. If another caller holds the
// lock, the guard reads the body, up to [WithMaxBody], while the request waits. The handler and gin's binders still get the
// whole body. The handler reads the rest of the body under the lock, so a slow client prolongs the hold. Limit that time
// with http.Server.ReadTimeout. The two protocols differ:
//
//   - Over HTTP/1, net/http notices only after the body was read that the client has left. So the guard reads the body before it
//     waits. A handler that answers while its client still sends needs HTTP/2, or a rule that does not wait.
//   - Over HTTP/2, unread bodies occupy the window of the connection, and the holder of the lock may need that window for its
//     own body. So the guard reads during the wait, and a request with a larger body does not wait: it gets the answer
//     for a taken lock. If large uploads shall wait, set [WithMaxBody].
//
// All requests that wait under one guard hold at most 64 MiB of bodies; the handlers that [Lock] returns for a client count
// as one guard. Beyond that, a request over HTTP/2, or one whose key uses the body, is answered as an overload. Any other
// request waits with its body unread, and the guard notices only at the end of the wait that its client has left.
//
// Before it reads the body, the guard decides everything that does not depend on the content of the body. It checks
// conditions and parts of keys that do not use the body, the Content-Type and Content-Length of the body, the number
// of waiters, and whether Redis is known to be down. An answer for one of these reasons does not wait for the body. If
// the rest has not arrived within 50 ms, the connection of an HTTP/1 client is closed after the answer, without a TCP reset.
//
// If a middleware replaces the body of a request, the guard uses the new body, whatever the Content-Length. If the
// middleware does so after ShouldBindBodyWith, there are two bodies, and a handler may read either. A request whose
// key uses the body is then answered with 500, and c.Errors contains the reason.
//
// A handler has given up if its lock was lost and the handler then returns without an answer, or adds the error of its
// context to c.Errors. The client then gets the status of a lost lock. If the handler answers, its answer stands,
// unless the rule says on_lost: fail, for which its route needs [WithBuffer]. When the guard discards an answer, it
// discards the headers that handlers set, including cookies and trailers. Headers of outer middlewares stay.
//
// A debounce window begins after a success: a status of 2xx, or 303, with no error added to c.Errors. Other
// redirections begin no window, because they send a form back or ask for a login. A handler that succeeds without
// having done its work calls [aspect.CancelDebounce], with c or the request's context. Under a rule for all methods,
// such as a rule of Handler, HEAD, OPTIONS and TRACE begin no window.
//
// A CORS preflight passes the guard, unless a rule names OPTIONS, so a handler of Any must not do its work for
// OPTIONS. The lock of a WebSocket, of server-sent events, or of another long response is held until the handler
// returns.
//
// # What a client sees
//
// Strategy error answers with an RFC 9457 problem document and, if the client should retry, Retry-After in whole
// seconds; see [WithErrorWriter]. skip answers 204, and null_response 200 with null or the rule's response. The
// header [failpolicy.StatusHeader] distinguishes both from an answer of the handler. An answer of a handler that runs
// unlocked under strategy proceed has that header, too. If the client has left, c.Writer.Status, and so the access log,
// shows 499. That status is never sent. The guard sends 503 with Retry-After, because some clients still read: clients
// that closed only their side of the connection, and clients whose request the server itself canceled. net/http does
// that when a read deadline passes that a middleware has set with [http.ResponseController.SetReadDeadline], even if the
// request has no body. Set it for requests with a body only, or after the guard. No answer contains a key, an owner or a
// message of Redis.
//
// An answer of the guard has Cache-Control: no-store. The guard removes the headers of outer middlewares that
// describe the answer of the handler, such as ETag, Expires and all Content- headers. CORS, Vary, security
// headers, request ids and cookies stay. So does Content-Encoding beside Vary: Accept-Encoding, because a
// compressing middleware set it.
//
// The guard adds refusals with a status of 500 or more to c.Errors, for the logger. The error is an
// [*aspect.RefusedError], whose message is safe to show to clients. If the program is at fault, it is an error that
// says what to change. The guard also adds an error for requests that yield no key, with the reason as the error's
// Meta, which gin.Logger prints.
//
// After an answer of the guard, the guard drops everything that outer middlewares write through c.Writer. For example,
// gin.ErrorLogger writes an answer for every error in c.Errors. The guard also drops such output after the answer of a
// handler whose lock was lost, if that answer was already sent. An application whose own middleware answers errors
// needs an error writer that writes nothing; see [WithErrorWriter].
//
// # The end of a response
//
// A small response is sent after the handlers have returned and the locks were freed. A flushed response, or a response
// larger than the buffers of net/http, is partly sent before that. A client that sends its next request as soon as it
// sees the response may then find its own lock still held. For such clients let rules wait briefly, or use
// [WithBuffer], which sends the response when the locks are free.
//
// # Shutdown
//
// Shut down the server first (http.Server.Shutdown), then the Live set and the lock client (Close), then the Redis
// client. The guard has no goroutine and needs no Close.
//
// A [Guard] and its handlers are safe for concurrent use.
package ginlock
