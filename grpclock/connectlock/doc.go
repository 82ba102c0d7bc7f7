// Package connectlock runs the procedures of Connect handlers (connectrpc.com/connect) under distributed
// locks, whichever protocol their callers speak: Connect, gRPC or gRPC-Web. It does not need grpc-go.
//
//	guard, err := connectlock.New(locks, connectlock.WithSet(rules))
//	…
//	mux.Handle(ordersconnect.NewOrdersHandler(shop,
//		connect.WithInterceptors(authentication, guard.Interceptor())))
//	err = guard.Check(ordersconnect.OrdersName)
//
// Rules are the rules of gRPC methods, in the same files and .proto options: the endpoint
// `grpc: /shop.v1.Orders/Pay` is the procedure /shop.v1.Orders/Pay. Keys and conditions
// use req, metadata (the headers of the request), method, peer and the variables of [WithVariable].
// The key is built from the message that the handler gets, whichever encoding the caller chose, so both
// read the same value. The documentation of rules, reload and streams in package grpclock applies here, too.
// examples/connect is a whole service. CORS preflights are answered before an interceptor
// sees them.
//
// # One procedure
//
// [Lock] is the short form for one unary procedure. It needs no guard and no Check, because it checks its rule at once:
//
//	lock := connectlock.Lock(locks, "/shop.v1.Orders/Pay", "order:pay:#{req.order_id}")
//	mux.Handle(ordersconnect.NewOrdersHandler(shop, connect.WithInterceptors(authentication, lock)))
//
// # Where it goes
//
// Put the interceptor after recovery ([connect.WithRecover]), authentication and validation, and before an
// interceptor that opens a transaction, because calls that wait would hold connections of a pool that the holder may
// need. The first interceptor in the list is the outermost. The interceptors
// before the guard see the error of a refusal with its reason: it matches the sentinels of package core and
// wraps an [*aspect.RefusedError]. If a call was skipped or a fallback ran, they see a reply that is a
// proto.Message but does not have the generated type.
//
// # Guarantees
//
//   - The handler runs at most once, and never without its lock, unless a rule says so or the program
//     calls [aspect.Aspect.Suspend].
//   - The guard holds the lock from before the handler starts until it returns or panics.
//   - A loss cancels the context of the handler with the cause [core.ErrLost]. A shutdown that does not
//     wait for the handler cancels it with [core.ErrClosed]. Send and Receive then fail, including a Receive
//     that is blocked, with the answer that the caller gets: CodeInternal, LOCK_LOST. A loss never looks
//     like a cancellation by the client.
//   - A reload takes effect with the next call. The guard refuses an invalid file and keeps the old rules.
//   - A procedure whose rule is broken answers CodeInternal and never runs its handler.
//   - The answers to clients contain neither a key nor an owner nor an answer of Redis.
//   - A caller that has disconnected or whose deadline has passed gets no strategy. Waits end before
//     deadlines.
//
// # When the lock is not acquired
//
//	error        a connect.Error with the code of the cause, or of the rule, and the
//	             details ErrorInfo (domain "interlock") and, if the caller should retry,
//	             RetryInfo. Header Retry-After, which clients find in the error's Meta
//	skip, null   success. Unary and client-streaming calls get one empty reply of the
//	             method's type, or with null the rule's response; other calls end
//	             without a message. Header X-Lock-Status: skipped or null
//	fallback     the handler of [WithFallback] or [WithStreamFallback]
//	proceed      the handler, unlocked. Header X-Lock-Status: unlocked
//
// An answer of the guard (error, skip, null) has Cache-Control: no-store, because a call may come
// as GET. An HTTP layer around the handler that sets headers such as ETag sets them on these answers, too.
//
// # Restrictions
//
//   - A key over req needs the first message of a stream. If the server sends first,
//     both sides would wait. See [WithServerFirst].
//   - While a stream waits, the guard receives its messages, so that they do not occupy the window of the HTTP/2
//     connection, which the holder of the lock may need. A stream that sends more than 1 MiB during its wait gets the
//     answer for a taken lock. All streams that wait under one guard hold at most 64 MiB; beyond that, a stream
//     is answered as an overload. A procedure without a registered descriptor waits with its messages unread, which can
//     stall the other calls of its connection: import its generated package, or let its rule not wait.
//   - The guard cannot see the write timeout of an HTTP server. Let rules wait for less than that.
//   - Over HTTP/1.1 a client is informed of a loss only after it has sent its next message.
//   - grpc-go clients do not retry by themselves, because a Connect server sends headers before each error,
//     and their retry policy does not apply after headers.
//   - Handlers created without the interceptor run unlocked. [Guard.Check] finds that only if no handler of
//     the same shape has the interceptor. Test for it as package grpclock describes under Start-up.
//
// Shut down in this order: the HTTP server, [core.Client.Close], then the Redis client.
package connectlock
