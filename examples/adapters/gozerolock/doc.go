// Package gozerolock runs REST routes of go-zero under the locks of declared rules, with package httplock. Copy its
// files, without the tests.
//
//	guard, err := httplock.New(locks, httplock.WithSet(rules))
//	server := rest.MustNewServer(c.RestConf)
//	server.AddRoutes(gozerolock.Routes(guard, "/api", rest.Route{Method: http.MethodPost, Path: "/orders/:id/pay", Handler: pay}),
//		rest.WithPrefix("/api"), rest.WithJwt(c.Auth.AccessSecret))
//	err = gozerolock.Check(server, guard)
//
// goctl generates the calls of AddRoutes. Wrap their routes. A rule names the whole path: POST /api/orders/:id/pay. The
// guard runs after the middlewares of go-zero and of rest.Server.Use, and after authentication.
//
// A lock protects an order only if the handler reads its number from the place that the key names:
//
//	path.id         the tag path of httpx.Parse
//	query.id        r.URL.Query; under GET, HEAD and DELETE also the tag form
//	form.id         the tag form
//	header["X-Id"]  the tag header
//	body.id         the tag json
//
// httpx.Parse merges forms and the query into the tag form. Beside a key over the query of a POST, a client that adds a form
// chooses another lock than the handler needs. Under methods without forms, Routes answers 415 to a multipart form, which
// httpx.Parse would read. A field with two tags takes the last of path, form, header
// and json, and so does a field without tags. In these cases, check the lock for the value that the handler uses.
// MustHold panics if the request holds another lock:
//
//	core.MustHold(r.Context(), "order:pay:"+req.Order)
//
// go-zero answers 503 after Timeout (3 s by default) although the handler goes on. The lock is held until the handler
// returns. A wait ends before the timeout, with 409. The circuit breaker counts answers of 500 and more. An outage of Redis
// (503) therefore opens it, and a taken lock (409, 429) does not.
//
// A request that waits counts for MaxConns (10000 by default), and go-zero answers requests beyond it with 503. Keep MaxWaiters
// below it.
//
// Shut down the server first, then the lock client, then the Redis client.
//
// # RPC
//
// An RPC server of go-zero is a gRPC server, and package grpclock needs no adapter:
//
//	server := zrpc.MustNewServer(c.RpcServerConf, func(s *grpc.Server) {
//		orderspb.RegisterOrdersServer(s, shop)
//		logx.Must(guard.Check(s))
//	})
//	server.AddUnaryInterceptors(guard.UnaryServerInterceptor())
//	server.AddStreamInterceptors(guard.StreamServerInterceptor())
//
// Its breaker counts RESOURCE_EXHAUSTED as a failure. This is the status of debounced, overload and a full semaphore, so a
// few double clicks would block the method for every caller. Set the status of these causes, for example to ABORTED:
//
//	status:
//	  debounced: {http: 429, grpc: ABORTED}
//	  overload: {http: 429, grpc: ABORTED}
//	  busy: {http: 429, grpc: ABORTED} # for a semaphore
//
// The tests of this package do not compile this part, because package zrpc needs 560 packages, such as etcd and Kubernetes.
package gozerolock
