// Package kratoslock runs the operations of kratos servers under the locks of declared rules, with package grpclock. Copy its
// files, without the tests. One middleware serves both transports (http and grpc are the packages transport/http and
// transport/grpc of github.com/go-kratos/kratos/v2, and orderspb is the code that is generated for the service):
//
//	guard, err := grpclock.New(locks, grpclock.WithSet(rules))
//	httpServer := http.NewServer(http.Middleware(recovery.Recovery(), authentication, kratoslock.Middleware(guard)))
//	grpcServer := grpc.NewServer(grpc.Middleware(recovery.Recovery(), authentication, kratoslock.Middleware(guard)),
//		grpc.StreamInterceptor(guard.StreamServerInterceptor()))
//	…
//	err = guard.Check(grpcServer, kratoslock.Files{orderspb.File_orders_proto})
//
// A rule names an operation, in the .proto file or in a rule file, and one rule holds for both transports:
//
//	rules:
//	  - grpc: /shop.v1.Orders/Pay
//	    key: "order:pay:#{req.order_id}"
//
// Over HTTP the key reads the decoded message (req), headers (metadata) and the address of the connection (peer). A refusal
// has the HTTP status of its cause, or of the rule, the reason LOCK_…, and Retry-After. Over gRPC, grpclock answers. Over HTTP,
// handlers see the headers of the request as incoming metadata of gRPC, and grpc.SetHeader sets headers of the answer.
//
// An HTTP handler that protoc-gen-go-http of kratos has not generated takes the lock only if it names the operation:
//
//	http.SetOperation(ctx, "/shop.v1.Orders/Pay")
//	reply, err := ctx.Middleware(handle)(ctx, request)
//
// The servers of kratos have a timeout of one second, unless http.Timeout and grpc.Timeout set another one. A wait ends
// before this timeout, with the answer for a taken lock. Pass all middlewares to one call of http.Middleware, because a
// second call replaces the first. Kratos calls its stream middlewares for each message, so streams need the interceptor.
//
// Over HTTP, generated handlers decode the whole request before the middleware, whatever its size, so that a waiting request does
// not occupy the window of an HTTP/2 connection.
//
// Shut down the servers first, then the lock client, then the Redis client.
package kratoslock
