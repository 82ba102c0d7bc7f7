// Package grpclock runs gRPC methods under distributed locks. A rule names a method, a key built from its
// request, and the answer to a caller that does not get the lock. The package provides interceptors for
// a server; package core/aspect does the rest.
//
//	guard, err := grpclock.New(locks, grpclock.WithRules(ruleset.Rule{
//		Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"),
//		Key:      "order:pay:#{req.order_id}",
//	}))
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(recovery, authentication, guard.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
//	)
//	orders.RegisterOrdersServer(server, shop)
//	err = guard.Check(server)
//
// # One method
//
// [Lock] is the short form for one unary method. It needs no guard and no Check, because it checks its rule at once:
//
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recovery, authentication,
//		grpclock.Lock(locks, "/shop.v1.Orders/Pay", "order:pay:#{req.order_id}")))
//
// # Rules
//
// A rule may be written beside its method in the .proto file:
//
//	import "interlock/v1/lock.proto";
//
//	service Orders {
//	  rpc Pay(PayRequest) returns (PayReply) {
//	    option (interlock.v1.lock) = {key: "order:pay:#{req.order_id}" wait_time: "10s"};
//	  }
//	}
//
// Your file also needs a syntax line, a package, the messages, and a go_package such as
// "example.com/shop/orderspb". "interlock proto -o third_party" writes the imported file below one of your
// import roots. The file documents each field. protoc needs the plugins protoc-gen-go and
// protoc-gen-go-grpc:
//
//	protoc -I . -I third_party --go_out=. --go_opt=module=example.com/shop \
//		--go-grpc_out=. --go-grpc_opt=module=example.com/shop shop.proto
//
// Run go mod tidy after that, because it fails while your files import code that is not generated yet. With buf, which Go can
// build and run (go run github.com/bufbuild/buf/cmd/buf@latest generate), make third_party a separate module in buf.yaml,
// and generate code for your files only:
//
//	# buf.yaml
//	version: v2
//	modules: [{path: ., excludes: [third_party]}, {path: third_party}]
//
//	# buf.gen.yaml, besides its plugins
//	version: v2
//	inputs: [{directory: ., paths: [shop.proto]}]
//
// Other languages ignore the option, but need the imported file to compile yours. You need not register
// anything, because the guard reads the descriptor of every method that is called. Each option is a rule;
// if a method has several, each needs a name. The guard takes their locks in the order of the options.
//
// A rule may also be in a rule file, in YAML. Give the file to [WithSet]:
//
//	rules, err := ruleset.Watch("locks.yaml")
//	…
//	guard, err := grpclock.New(locks, grpclock.WithSet(rules))
//
// Or declare rules in code: with [WithRules], or together with a rule file with [ruleset.WithRules]. One
// rule may be declared in all three places. Options override rules in code, and the rule file overrides
// both, field by field. So a rule file may change the wait_time of a rule that the .proto file declares,
// or disable the rule with disabled: true. Such an entry names the full method, and the rule if the rule
// has a name. Wildcards apply only to methods without a specific rule. An option with none: true counts as
// a specific rule.
//
// "*" does not match health checking, reflection and similar services. A rule that names such a
// method or its service matches it. See [ruleset.Endpoint.Infrastructure].
//
// A debounce window begins after a call that returns OK. A handler whose reply means that
// it has not done its work calls [aspect.CancelDebounce] with its context.
//
// # Reload
//
// The guard follows a [ruleset.Live] until the Live is closed. It compiles a new file for every method
// that was called or that [Guard.Check] has seen, and checks the file as Check does. If the file has a
// mistake or gives a rule in force another lock, all adapters of the set refuse it and keep the old rules.
// Calls in progress run to their end under the rules with which they began.
//
// Without Check, a mistake in the rule of a method shows only with the first call of the method. The guard
// still refuses a reload that would give the method another lock, if the program has the descriptor of the
// method.
//
// # Where it goes
//
// Put the interceptors after recovery, authentication and validation. Then a request that these refuse
// takes no lock, and variables such as the principal are set. Put them before an interceptor that opens a
// transaction, so that the lock outlives the transaction. Tracing and metrics of RPCs are stats handlers
// and see everything.
//
// Interceptors before the guard see the error of a refusal with its reason: it matches the sentinels of
// package core and wraps an [*aspect.RefusedError]. They may return another error. The message of the error
// and the answer to the client contain neither a key nor an owner nor an answer of Redis.
//
// If the same guard is installed twice, its second interceptor does nothing. Two guards take two locks. The
// header x-lock-status contains the status of each guard, the status of the inner guard last, and each value
// only once.
//
// # Keys
//
// Keys and conditions may use req (the request message, by the field names of the
// .proto file), metadata, method, peer, and the variables of [WithVariable]. The guard reads dynamic
// messages and messages of the opaque API, too. It evaluates the key once, before the handler runs.
//
// # Streams
//
// The guard holds the lock from before the handler starts until the handler returns. A key over
// metadata needs nothing else. A key over req needs the first message: the
// interceptor receives it before it takes the lock and before the handler runs, and returns it to the
// first RecvMsg of the handler. A stream that a client closes without a message yields no key.
//
//   - Server-streaming and client-streaming: both work.
//   - Bidirectional, the client sends first: both work.
//   - Bidirectional, the server sends first: metadata only. With req both sides
//     would wait for each other until the deadline of the call. A descriptor does not
//     show which side sends first, so [Guard.Check] cannot find that mistake by itself.
//     Name such methods with [WithServerFirst], and Check finds it.
//
// # When the lock is not acquired
//
//	error          the cause's status, or the rule's; one ErrorInfo with the domain
//	               "interlock"; if the caller should retry, RetryInfo and the trailer
//	               grpc-retry-pushback-ms, which clients with a retry policy obey
//	skip, null     OK. Unary and client-streaming calls get one empty reply of the
//	               method's type, or with null the rule's response; other calls end
//	               without a message. Header x-lock-status: skipped or null
//	fallback       the handler of [WithFallback] or [WithStreamFallback]
//	proceed        the handler, unlocked. Header x-lock-status: unlocked
//
// The descriptor of a method shows whether callers expect a reply. A method that a handler of unknown
// services serves ([grpc.UnknownServiceHandler]), for example in a proxy, may have no descriptor. Then
// it cannot be skipped or answered with null: a rule with such a strategy is broken, and the calls fail
// with INTERNAL, LOCK_MISCONFIGURED. Give the files of such methods to [WithDescriptors], or choose another
// strategy.
//
// If the deadline of a caller has passed or the caller has disconnected, the caller gets DEADLINE_EXCEEDED
// or CANCELLED and no strategy. The wait ends before the deadline of the caller.
//
// # While it is held
//
// The context of the handler carries the lock. It is canceled with the cause [core.ErrLost] when the lock
// is lost, or with [core.ErrClosed] when a shutdown does not wait for the handler. SendMsg and RecvMsg of
// the stream then fail with the status of the loss, including a RecvMsg that is blocked. (A SendMsg that
// flow control blocks fails when the call ends.) Because RecvMsg cannot be interrupted, the guard runs
// each one in a separate goroutine and copies its message once. After a loss, the last of these goroutines
// stops when the call ends. A loss never looks like a cancellation by the client: the answer is INTERNAL,
// LOCK_LOST. If the handler still finishes, with a reply or with an error that does not come from the
// loss, its answer stands, unless the rule says on_lost: fail. A stream whose send or receive failed
// because of the loss has not finished, even if its handler returns nil.
//
// A handler may release the lock early through [Hold]. Its context is then canceled, and [Caller] returns
// the context to continue with. Its stream continues to work. If the handler panics, the guard releases the
// lock, and the panic then reaches the recovery around the guard.
//
// # Start-up
//
// [New] reports invalid options, and rules that are wrong for every method. [Guard.Check]
// reports all problems that depend on the registered services at once: mistakes in
// the options of .proto files, rules for unknown methods, fields that do not exist,
// responses and fallbacks of the wrong type. A method whose rule is broken answers
// INTERNAL and never runs its handler. Finding the rules of a method costs one map lookup and no
// allocation, whether the method has rules or not.
//
// Check also reports a rule whose methods no interceptor can guard, because the program never called the
// method that returns the interceptor for their shape. Check does not see which server has the
// interceptors. Methods of a server that was created without them run without their locks. Prove with a
// test that a method is guarded: while redistest.Server.Take holds the lock for another holder, the method
// has to answer ABORTED. Or call [core.MustHold] in the handler: it panics without the lock, even if a
// rule is disabled. In production, the Decision of an [aspect.Observer] shows whether calls are guarded
// (see [core.WithObserver]).
//
// A gateway that calls the service in the same process, such as grpc-gateway's
// Register…HandlerServer, bypasses the interceptors and takes no lock. Let it dial the server
// (Register…HandlerFromEndpoint, or a grpc.ClientConn over bufconn).
//
// If a timeout inside the guard, such as an interceptor after it, answers while the handler continues, the
// lock is released during that work. Put the timeout before the guard, or hand the lock over to the work
// with [core.Hold.Handover].
//
// Problems of options name the .proto file. Generated code has no line numbers. The
// command `interlock check --descriptors image.binpb` reports them, and so does a guard whose
// [WithDescriptors] contains files with source information.
//
// # Shutdown
//
// Shut down in this order: the gRPC server (GracefulStop, or Stop with
// [google.golang.org/grpc.WaitForHandlers]), [core.Client.Close], then the Redis
// client. The guard never releases a lock while its handler runs, however the server is stopped.
package grpclock
