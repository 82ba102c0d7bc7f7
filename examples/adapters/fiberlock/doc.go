// Package fiberlock runs routes of fiber v3 under the locks of declared rules, with package httplock. Copy its
// files, without the tests.
//
//	guard, err := httplock.New(locks, httplock.WithSet(rules))
//	app := fiber.New(fiber.Config{UnescapePath: true})
//	app.Use(recover.New(), authentication) // github.com/gofiber/fiber/v3/middleware/recover
//	app.Post("/orders/:id/pay", fiberlock.Lock(guard), pay)
//	err = fiberlock.Check(app, guard)
//
// A rule names a route as it is registered, without constraints and question marks: POST /orders/:id for
// /orders/:id<int>. A HEAD request runs under the rule of GET. The handler gets the lock with c.Context(); httplock.Hold
// and httplock.Caller work with it. c itself also carries the lock, but it is never canceled.
//
// A key reads the request as fasthttp has parsed it. A lock protects an order only if the handler reads its number from the
// place that the key names:
//
//	path.id       c.Params, c.Bind().URI
//	query.id      c.Query, c.Bind().Query, and c.FormValue
//	form.id       c.Bind().Form, c.Bind().Body, and c.FormValue
//	cookie.id     c.Cookies, c.Bind().Cookie
//	body.id       c.Bind().JSON
//
// c.Bind().All merges all places, and c.Bind().Body chooses by the Content-Type, which the client chooses. If a handler binds
// into a struct that embeds a struct Base with the field id, fiber also reads base.id and base[id] into that field, which a
// key does not notice. In these cases, check the lock for the value that the handler uses. MustHold panics if the
// request holds another lock:
//
//	core.MustHold(c.Context(), "order:pay:"+order)
//
// fiber is built on fasthttp, so some promises of httplock do not hold:
//
//   - fasthttp does not notice that a client has left. Such a request waits until its wait_time ends, and its handler
//     may still run. Do not use wait_time: forever.
//   - A request that waits occupies its connection and one of the handlers that fiber.Config.Concurrency permits. If the handler
//     that has the lock calls its own server, that call needs another one. Keep MaxWaiters below Concurrency.
//   - The lock is free before fasthttp sends the response. A stream (SendStream, SendStreamWriter) and a hijacked
//     connection, such as a WebSocket, therefore run without the lock: read the data under the lock and stream it afterwards.
//   - With StreamRequestBody, and with a Content-Encoding, a key cannot read the body: the answer is 400.
//   - If a handler gives up because its lock was lost, fiber's ErrorHandler answers after the guard: see LostError.
//   - c is reused when the handler returns. Work that goes on uses the context of Hold.Handover, never c.
//
// Put fiber's timeout around the guard: timeout.New(func(c fiber.Ctx) error { return c.Next() }) before Lock. Inside, it
// answers while the handler goes on, and the lock is released during that work. Give httplock.WithFallback a
// fiberlock.Handler, and read c in httplock.WithVariable with fiberlock.Ctx. A rule with on_lost: fail needs
// httplock.WithBuffer; any size is enough, because fasthttp holds responses back anyway.
//
// fasthttp.go converts requests and answers between fasthttp and net/http. fiber is the only framework here that is not built
// on net/http. An adapter for a second one should share that file instead of copying it.
//
// Shut down in this order: app.Shutdown, which waits for handlers, locks.Close, the Redis client.
package fiberlock
