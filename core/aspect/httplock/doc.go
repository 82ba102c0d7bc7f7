// Package httplock runs handlers of net/http, and of every router that builds on net/http, under the locks of declared
// rules.
//
//	guard, err := httplock.New(locks, httplock.WithSet(rules))
//	…
//	mux := http.NewServeMux()
//	err = guard.HandleFunc(mux, "POST /orders/{id}/pay", pay, ruleset.Rule{Key: "order:pay:#{path.id}"})
//	…
//	err = guard.Check()
//
// [Lock] puts one lock around a handler without a guard:
//
//	mux.Handle("POST /orders/{id}/ship", httplock.Lock(locks, "order:ship:#{path.id}")(http.HandlerFunc(ship)))
//
// # Routes
//
// A route is a method and a path as they are registered: the pattern of [http.ServeMux] without its host. Rules
// name a route in the same way, in Go and in a rule file:
//
//	http: POST /orders/{id}/pay
//
// A pattern without a method stands for one route for each of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS, and for
// one route "*" for all other methods. A rule for "* /orders/{id}" applies to each of these routes whose method no rule
// names. For HEAD the rule for GET, if there is one, applies instead, because net/http serves HEAD with the handler of GET.
// A rule that names HEAD has precedence.
//
// [Guard.Handle] registers a handler and puts it under the rules of its route. Patterns that differ only by their
// host, and equal patterns of several muxes, are one route and share their rules. [Guard.Middleware]
// is for routers that set [http.Request.Pattern] before they call their middlewares. Put it around the handler
// given to a ServeMux, or with chi:
//
//	r.With(guard.Middleware).Post("/orders/{id}/pay", pay) // or r.Use within r.Group
//	…
//	err = guard.Check("POST /orders/{id}/pay") // chi.Walk lists them
//
// Only the route that the router matched determines the rules; the guard does not trust the request. If the guard cannot
// determine the route, it answers 500, runs no handler, and warns observers once:
//
//   - Middleware around a whole mux, or with Use within chi's Route or Mount, runs before the router has matched.
//     Put it around the handlers: use With or Group there. Give Check every pattern that Middleware guards.
//   - Handle on a router below another router, such as a router of chi's Route and Mount, does not get the whole
//     pattern. Use With(guard.Middleware) there.
//   - A router may leave the method out of its pattern, as chi and echo v5 do, while the rules for the methods of a path
//     differ. Let a middleware before the guard write the method into the Pattern; with chi it is
//     RouteContext(r.Context()).RouteMethod. Do not use r.Method, because a middleware may have changed it.
//
// If a router, such as echo v4, sets no Pattern, add a middleware before the guard that sets it and calls
// [http.Request.SetPathValue] for each parameter. The routes keep their spelling, such as /orders/:id/pay. See
// examples/routers for both, and examples/nethttp for a whole service.
//
// The values of a path are the values that the router returns. [http.ServeMux] decodes them, so that one
// resource has one key. chi and echo return the spelling of the client, which may be 42 or %34%32. Put a handler
// around them that clears the RawPath of the URL, as examples/routers does.
//
// If one path has a pattern without a method and a pattern with a method, requests with that method run under the rules
// of both patterns: give the rules names.
//
// If gin and net/http share a rule file in one program, each Check reports the rules of the other as rules without
// a route. Give each a separate file, or write `unmatched: ignore`.
//
// Package keyexpr documents the variables of keys: path, query, header, cookie, form, body, method, route,
// client_ip, and the variables that [WithVariable] registers. client_ip is the address of the connection, unless
// [WithClientIP] replaces it.
//
// # The key and the handler read the same value
//
// The client fills the query, the form, the cookies and the body at the same time, so a lock protects an order only if the
// handler reads its number from the place that the key names:
//
//	path.id       r.PathValue
//	query.id      r.URL.Query
//	form.id       r.PostFormValue, r.PostForm, and r.FormValue
//	cookie.id     r.Cookie
//	body.id       encoding/json
//
// r.FormValue prefers a urlencoded form to the query. Beside a key over the query, a client that adds such a form chooses
// another lock than the handler needs. Package keyexpr describes the requests that are refused because handlers may read
// either of two values, and the binders of frameworks. Where a handler merges places, or reads a value in a way that you do
// not know, check the lock for the value that it uses. MustHold panics if the request holds another lock:
//
//	core.MustHold(r.Context(), "order:pay:"+order)
//
// # What the guard guarantees
//
// A handler runs once, under the locks of all rules of its route, or not at all. It runs without its lock only
// after [aspect.Aspect.Suspend], or if a rule says so: disabled, dry run, a condition that is false, strategy proceed.
// The locks are released when the handler returns or panics.
//
// The context of the handler's request carries the holds. It is canceled when one of them is lost, with [core.ErrLost]
// as its cause, or with [core.ErrClosed] if a shutdown does not wait for the handler. If the handler then returns
// without an answer, it has given up, and the client gets the status of a lost lock. If it answers, its answer stands,
// unless the rule says on_lost: fail, for which its route needs [WithBuffer].
//
// A debounce window begins after a success: a status of 2xx, or 303. Other redirections send a form back or ask
// for a login. A handler that succeeds without having done its work calls [aspect.CancelDebounce]. HEAD, OPTIONS
// and TRACE begin no window under a rule for any method.
//
// A CORS preflight passes the guard, unless a rule names OPTIONS, so a handler of any method must not do its work
// for OPTIONS. The lock of a WebSocket, of server-sent events, or of another long response is held until the
// handler returns.
//
// A handler may pass its request to another guarded handler of the same route. The guard serves it there without
// another lock. If its host, path, path values, query, header map or body differ, it is another request and takes the
// locks of that request. It re-enters locks that its context already holds. A request needs one permit of a semaphore,
// whatever the number of guards.
//
// The guard answers refusals with RFC 9457 problem documents, Retry-After, and [failpolicy.StatusHeader], like
// ginlock. Its answers have Cache-Control: no-store. It removes headers of layers around the guard that describe
// the answer of the handler, such as ETag. CORS, Vary, security headers, request ids and cookies stay, and so does
// Content-Encoding beside Vary: Accept-Encoding, because a compressing layer set it. No answer contains a key, an owner
// or a message of Redis. A wait ends in time for an answer before the WriteTimeout of the server.
//
// The guard attempts to take the lock before it reads a body that the key does not use. If another caller holds
// the lock, the guard reads the body, up to [WithMaxBody], while the request waits. The handler still gets the whole body.
// Set the ReadTimeout of the server, which limits a body that arrives slowly.
//
//   - Over HTTP/1, net/http notices only after the body was read that the client has left. So the guard reads the body before it
//     waits. A handler that answers while its client still sends needs HTTP/2, or a rule that does not wait.
//   - Over HTTP/2, unread bodies occupy the window of the connection, and the holder of the lock may need that window for its
//     own body. So the guard reads during the wait, and a request with a larger body does not wait: it gets the answer
//     for a taken lock. If large uploads shall wait, set [WithMaxBody].
//
// All requests that wait under one guard hold at most 64 MiB of bodies. Beyond that, a request over HTTP/2, or one whose key
// uses the body, is answered as an overload. Any other request waits with its body unread.
//
// If the client has left, access logs show 499. The guard sends 503 with Retry-After, because some clients still read:
// clients that closed only their side of the connection, and clients whose request the server itself canceled. net/http
// does that when a read deadline passes that a layer around the guard has set with
// [http.ResponseController.SetReadDeadline], even if the request has no body. Set it for requests with a body only, or inside
// the guard.
//
// A reload of a [ruleset.Live] changes all routes at once. The guard refuses a reload that [Guard.Check] would not
// accept and keeps the old rules. A request runs to its end under the rules with which it began.
//
// # What the guard does not do
//
// The guard sees only the answer, not an error that a handler of another framework returns to that framework. An
// adapter for such a framework keeps that error, calls [aspect.CancelDebounce], writes nothing, and returns the error
// to the framework after the guard has returned, so that the middlewares before the guard get it. If the handler gave
// up because its lock was lost, the guard has answered by then. The guard does not answer on a connection that a
// handler hijacks. If a handler returns while its work goes on, as [http.TimeoutHandler] does after a timeout, the lock
// is released during that work. Put such a handler around the guard and not into it, or hand the lock over to the work
// with [core.Hold.Handover]. If a router keeps its writers in a pool, as echo does, use a timeout outside the guard
// that waits for the handler, such as echo's ContextTimeout.
//
// Handlers that neither Handle nor Middleware guards run unlocked. Check reports that only if Middleware was never
// called. Prove with a test that a route is guarded: while redistest.Server.Take holds the lock for another holder, the
// route has to answer 409. Or call [core.MustHold] in the handler: it panics without the lock, even if a rule is
// disabled.
//
// # Place in the chain
//
// Put the guard after recovery, tracing, logging, compression and authentication, and before anything that opens
// a transaction. The lock then outlives the transaction, and requests that wait hold no connection of a pool that the holder
// may need. If a rule reads a registered variable that authentication has not set
// yet, the guard answers 500; the first such request is reported as a warning.
//
// Shut down the server first, then the Live set and the lock client, then the Redis client.
package httplock
