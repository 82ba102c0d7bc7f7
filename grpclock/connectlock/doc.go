// Package connectlock puts distributed locks around the procedures of Connect handlers
// (connectrpc.com/connect), whichever protocol their callers speak: Connect, gRPC or
// gRPC-Web. It needs no grpc-go.
//
//	guard, err := connectlock.New(locks, connectlock.WithSet(rules))
//	…
//	mux.Handle(ordersconnect.NewOrdersHandler(shop,
//		connect.WithInterceptors(authentication, guard.Interceptor())))
//	err = guard.Check(ordersconnect.OrdersName)
//
// Rules are those of gRPC methods, in the same files and .proto options: the endpoint
// `grpc: /shop.v1.Orders/Pay` is the procedure /shop.v1.Orders/Pay. Keys and conditions
// use req, metadata (the headers of the request), method, peer and what [WithVariable]
// registers. What package grpclock says of rules, reload and streams holds here.
// examples/connect is a whole service. CORS preflights are answered before an interceptor
// sees them.
//
// # Where it goes
//
// After recovery ([connect.WithRecover]), authentication and validation; before whatever
// opens a transaction. The first of the interceptors acts first. Those before it see the
// error of a refusal with its reason: it matches the sentinels of package core and wraps
// an [*aspect.RefusedError]. To them the reply of a call that was skipped, or had a
// fallback, is a proto.Message that is not of the generated type.
//
// # What is guaranteed
//
//   - The handler runs at most once, and never without its lock, unless a rule says so.
//   - The lock is held from before the handler starts until it returns, panics included.
//   - A loss ends the handler's context with the cause [core.ErrLost], and a shutdown that
//     does not wait for it with [core.ErrClosed]. Its Send and
//     Receive then fail, a Receive that is blocked included, with the answer that the
//     caller gets: CodeInternal, LOCK_LOST. It never looks like the client's cancel.
//   - A reload changes the next call. A bad file is refused, and the old rules stay.
//   - A procedure whose rule is broken answers CodeInternal and never runs its handler.
//   - What clients get contains neither key nor owner nor an answer of Redis.
//   - A caller who is gone or out of time gets no strategy; waits end before deadlines.
//
// # When the lock is not acquired
//
//	error        a connect.Error with the code of the cause, or of the rule, and the
//	             details ErrorInfo (domain "interlock") and, where a retry makes sense,
//	             RetryInfo. Header Retry-After, which clients find in the error's Meta
//	skip, null   success. Unary and client-streaming: one empty reply of the method's
//	             type, or of null the rule's response; the others end without a
//	             message. Header X-Lock-Status: skipped or null
//	fallback     what [WithFallback] or [WithStreamFallback] registered
//	proceed      the handler, unlocked. Header X-Lock-Status: unlocked
//
// An answer of the guard (error, skip, null) has Cache-Control: no-store, because a call may come
// as GET. An HTTP layer around the handler that sets headers such as ETag sets them there, too.
//
// # What is not
//
//   - A key over req needs the first message of a stream: where the server speaks first,
//     both sides would wait. See [WithServerFirst].
//   - The write timeout of an HTTP server is not known: let rules wait for less.
//   - Over HTTP/1.1 a client learns of a loss only when it has sent its next message.
//   - grpc-go clients do not retry by themselves: a Connect server sends headers before
//     each error, which ends their retry policy.
//   - Handlers made without the interceptor run unlocked. [Guard.Check] finds that only where
//     no handler of the shape has it: test as package grpclock says under Start-up.
//
// Shut down in this order: the HTTP server, [core.Client.Close], then the Redis client.
package connectlock
