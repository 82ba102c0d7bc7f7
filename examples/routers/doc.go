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
// A rule names a route in the spelling of its router: POST /orders/{id}/pay for chi, POST
// /orders/:id/pay for echo. These routers leave needless escapes in a path, and a key contains the
// value that the handler reads.
package routers
