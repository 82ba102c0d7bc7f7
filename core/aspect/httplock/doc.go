// Package httplock takes the locks of declared rules around handlers of net/http, and
// of every router that stands on it.
//
//	guard, err := httplock.New(locks, httplock.WithSet(rules))
//	…
//	mux := http.NewServeMux()
//	err = guard.HandleFunc(mux, "POST /orders/{id}/pay", pay, ruleset.Rule{Key: "order:pay:#{path.id}"})
//	…
//	err = guard.Check()
//
// # Routes
//
// A route is a method and a path as they are registered: the pattern of [http.ServeMux]
// without its host. A rule names it so, in Go and in a rule file:
//
//	http: POST /orders/{id}/pay
//
// A pattern without a method is a route for each of GET, HEAD, POST, PUT, PATCH, DELETE
// and OPTIONS, and one more, "*", for whatever else clients invent: a rule of a file that is
// to hold for those, too, says "* /orders/{id}". HEAD is under the rule for GET, with whose
// handler net/http serves it, unless a rule names HEAD.
//
// [Guard.Handle] registers a handler and puts it under the rules of its route. Patterns that
// differ by their host, and those of several muxes, are one route, under the rules of all.
// [Guard.Middleware] is for routers that set [http.Request.Pattern] before they call
// their middlewares: around the handler given to a ServeMux, or with chi:
//
//	r.With(guard.Middleware).Post("/orders/{id}/pay", pay) // or r.Use within r.Group
//	…
//	err = guard.Check("POST /orders/{id}/pay") // chi.Walk lists them
//
// The route that the router has matched decides, not what a request says of itself. Where the guard
// cannot know the route, it answers 500, runs no handler, and warns observers once:
//
//   - Middleware around a whole mux, or with Use within chi's Route or Mount, comes before the
//     router has matched. Put it around the handlers: there use With or Group. So give Check
//     every pattern that Middleware guards.
//   - Handle on a router below another, such as one of chi's Route and Mount, does not know the
//     whole pattern. Use With(guard.Middleware) there.
//   - A router that leaves the method out of its pattern, such as chi, where the rules for the
//     methods of a path differ. Let a middleware before the guard write it into the Pattern, with
//     chi RouteContext(r.Context()).RouteMethod. The method of the request may have been changed.
//
// Of a router that sets no Pattern, such as echo, a middleware before the guard sets it and calls
// [http.Request.SetPathValue] for each parameter; its routes keep their spelling,
// /orders/:id/pay. See examples/routers for both, and examples/nethttp for a whole service.
//
// The values of a path are what the router hands over. [http.ServeMux] decodes them, so that
// one resource has one key. chi and echo hand over the spelling of the client, be it 42 or
// %34%32: put a handler around them that clears the RawPath of the URL, as examples/routers
// does.
//
// A pattern without a method and one with, on one path, are one route for that method, under
// the rules of both: give the rules names.
//
// Where gin and net/http share a rule file in one program, each Check finds the other's rules
// without a route: give them a file each, or say `unmatched: ignore`.
//
// Package keyexpr documents the variables of keys: path, query, header, cookie, form,
// body, method, route, client_ip, and what [WithVariable] registers. client_ip is the
// address of the connection, unless [WithClientIP] knows better.
//
// # What is guaranteed
//
// A handler runs once, under the locks of all rules of its route, or not at all. Without
// its lock it runs only where a rule says so: disabled, dry run, a condition that is
// false, strategy proceed. Its request's context carries the holds and ends when one is
// lost, with [core.ErrLost] as its cause, or with [core.ErrClosed] when a shutdown does not
// wait for it. A handler that then returns without an answer
// has given up, and the client gets the status of a lost lock; one that answers keeps its
// answer, unless the rule says on_lost: fail, for which its route needs [WithBuffer]. The locks
// are freed when the handler returns or panics.
//
// A debounce window begins after a success: a status of 2xx, or 303. Other redirections send a
// form back or ask for a login. A handler that succeeds without having done its work calls
// [aspect.CancelDebounce]. HEAD, OPTIONS and TRACE begin no window under a rule that is for any
// method.
//
// A CORS preflight passes the guard, unless a rule names OPTIONS: a handler of any method must not
// do its work then. The lock of a WebSocket, of server-sent events, or of another long response is
// held until the handler returns.
//
// A request that its handler gives to a guarded handler of the same route again is served there
// without another lock. With another host, path, value of the path, query, header map or body it
// is another request, and takes the locks of that. It enters those that the context holds
// already: a request needs one permit of a semaphore, whatever the number of guards.
//
// Refusals are answered with RFC 9457 problem documents, Retry-After, and
// [failpolicy.StatusHeader], as in ginlock. An answer of the guard has Cache-Control: no-store,
// and headers of layers around the guard that describe the handler's answer, such as ETag, are
// removed from it; CORS, Vary, security headers, request ids and cookies stay. So does
// Content-Encoding beside Vary: Accept-Encoding, because a layer that compresses set it.
// No answer contains a key, an owner or a text of Redis. A wait ends in time for an answer before
// the WriteTimeout of the server.
//
// The guard attempts to take the lock before it reads a body that the key does not use. Where the
// lock is taken, a request over HTTP/1 reads its body before it waits, up to [WithMaxBody], because
// net/http does not notice before that its client left; a handler that answers while its client
// still sends needs HTTP/2, or a rule that does not wait. The handler gets all of a body, and one
// that comes slowly is bounded by the server's ReadTimeout: set it. All requests that wait under
// one guard hold 64 MiB of bodies at most. Beyond that a request waits without having read its
// body, and one whose key uses the body is answered as an overload.
//
// A reload of a [ruleset.Live] changes all routes at once; one that [Guard.Check] would
// not accept is refused, and the old rules stay. A request ends under the rules that it
// began with.
//
// # What is not
//
// The guard does not see an error that a handler of another framework returns to that
// framework, only the answer. A handler that hijacks its connection answers on its own. One
// that returns while its work goes on, as [http.TimeoutHandler] does when its time is up,
// frees the lock under that work: put such a handler around the guard, not into it, or let the
// work take the lock along with [core.Hold.Handover].
// Where a router keeps its writer in a pool, as echo does, use a timeout outside the guard that
// waits for the handler, such as echo's ContextTimeout.
//
// Handlers that are neither registered by Handle nor within Middleware run unlocked. Check finds
// that only where Middleware was never called. Let a test show it: while redistest.Server.Take has
// the lock for another holder, the route has to answer 409. Or call [core.MustHold] in the
// handler: it panics without the lock, also where a rule is disabled.
//
// # Place in the chain
//
// After recovery, tracing, logging, compression and authentication; before anything that
// opens a transaction, so that the lock outlives it. A rule that reads a registered
// variable which authentication has not set yet is answered with 500; the first such
// request is a warning.
//
// Shut down the server first, then the Live set and the lock client, then the Redis client.
package httplock
