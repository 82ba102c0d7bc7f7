// Package routers locks routes of chi, echo v4 and echo v5 by rules, with package httplock. Copy decoded.go
// and the file of your router: chi.go, echo.go or echo5.go. For echo v5:
//
//	guard, err := httplock.New(locks, httplock.WithSet(rules))
//	e := echo.New()
//	e.Use(authentication, routers.Echo5Middleware(guard))
//	e.POST("/orders/:id/pay", pay)
//	…
//	err = guard.Check(routers.Echo5Patterns(e)...)
//	server := &http.Server{Handler: routers.Decoded(e)}
//
// echo v4 also needs e.Pre(EchoRouted). [Chi] and [Echo] show the wiring of the other routers.
//
// A lock protects an order only if the handler reads its number from the place that the key names. With chi, that is as in
// package httplock. With echo:
//
//	path.id       c.Param; BindPathParams, in v5 BindPathValues
//	query.id      c.QueryParam, BindQueryParams
//	form.id       c.FormValue, and c.Bind of a form
//	cookie.id     c.Cookie
//	body.id       BindBody of JSON
//
// c.Bind reads the path, then, for GET, HEAD and DELETE, the query, then the body. Each overrides the values before it,
// and a JSON body fills fields without a json tag by their names. So beside param:"id" a client chooses the order with a body
// {"id":"42"}, and with a key over the path another lock than the handler needs. Bind each place into a struct of its
// own, or write json:"-" xml:"-" on the field. If that is not possible, check the lock for the value that the handler uses.
// MustHold panics if the request holds another lock:
//
//	core.MustHold(c.Request().Context(), "order:pay:"+order)
//
// A rule names a route in the spelling of its router: POST /orders/{id}/pay for chi, POST
// /orders/:id/pay for echo. These routers leave needless escapes in a path, and a key contains the
// value that the handler reads.
package routers
