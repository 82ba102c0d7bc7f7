// Package grpclock puts distributed locks around gRPC methods: a rule names a
// method, a key over its request, and what the caller gets when the lock is
// not acquired. It has interceptors for a server; core/aspect does the rest.
//
//	guard, err := grpclock.New(locks, grpclock.WithRules(ruleset.Rule{
//		Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"),
//		Key:      "order_lock_#{req.order_id}",
//	}))
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(recovery, authentication, guard.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
//	)
//	orders.RegisterOrdersServer(server, shop)
//	err = guard.Check(server)
//
// # Rules
//
// A rule may stand beside its method in the .proto file:
//
//	import "interlock/v1/lock.proto";
//
//	service Orders {
//	  rpc Pay(PayRequest) returns (PayReply) {
//	    option (interlock.v1.lock) = {key: "order_lock_#{req.order_id}" wait_time: "10s" on_busy: STRATEGY_NULL_RESPONSE};
//	  }
//	}
//
// "interlock proto -o third_party" writes that file below an import root of yours; it says
// what each field means:
//
//	protoc -I . -I third_party --go_out=. --go-grpc_out=. shop.proto
//
// With buf third_party is a module of its own in buf.yaml, and code is made of yours only:
//
//	# buf.yaml
//	version: v2
//	modules: [{path: ., excludes: [third_party]}, {path: third_party}]
//
//	# buf.gen.yaml, besides its plugins
//	version: v2
//	inputs: [{directory: ., paths: [shop.proto]}]
//
// Other languages ignore the option, and need only the file to compile. Nothing is
// registered by hand: the guard asks the descriptor of every method that is called. Two
// options are two rules, which need names; their locks are taken in that order.
//
// Or it stands in a rule file, in YAML, which [WithSet] takes:
//
//	rules, err := ruleset.Watch("locks.yaml")
//	…
//	guard, err := grpclock.New(locks, grpclock.WithSet(rules))
//
// Or in code: [WithRules], or with a rule file [ruleset.WithRules]. One rule may be
// declared in all three places. Options are laid over code and the file over both,
// field by field, so that a file may change the wait_time of a rule that the .proto
// file declares, or switch it off with disabled: true. Such an entry has the full
// method, and the rule's name if it has one. Wildcards apply to methods that have no
// rule of their own, not even an option with none: true.
//
// "*" leaves health checking, reflection and their kind alone; a rule that names such a
// method or its service does not. See [ruleset.Endpoint.Infrastructure].
//
// A debounce window begins after a call that ends with OK. A handler whose reply says that
// it has not done its work calls [aspect.CancelDebounce] with its context.
//
// # Reload
//
// The guard follows a [ruleset.Live] for as long as that is open. A new file is
// compiled for every method that [Guard.Check] has seen or that was called, and
// judged as Check judged the first one. What is wrong, or gives a rule that is in
// force another lock, is refused by all adapters of the set: the old rules stay.
// Calls that are under way end under the rules with which they began.
//
// Without Check, mistakes in the rule of a method that was not called yet show with
// its first call. That its lock would be another one is found all the same, if the
// program has the method's descriptor.
//
// # Where it goes
//
// After recovery, authentication and validation, so that a request that is refused
// anyway takes no lock and variables such as the principal are there; before
// whatever opens a transaction, so that the lock outlives it. Tracing and metrics of
// RPCs are stats handlers and see everything. Interceptors before this one see the
// error of a refusal with its reason: it matches the sentinels of package core and
// wraps an [*aspect.RefusedError]; they may return another error. Its text, and what the client gets, contain
// neither key nor owner nor an answer of Redis.
//
// A guard that meets a call which it guards already, because it is installed twice, does
// nothing a second time. Two guards take two locks, and x-lock-status has what each of
// them says once, the inner one's last.
//
// # Keys
//
// Keys and conditions may use req (the request message, by the field names of the
// .proto file), metadata, method, peer, and what [WithVariable] registers. Dynamic
// and opaque messages are read as well as generated ones. The key is evaluated
// once, before the handler.
//
// # Streams
//
// The lock is held from before the handler starts until it returns. A key over
// metadata needs nothing else. A key over req needs the first message: the
// interceptor receives it itself, before anything is locked and before the handler
// runs, and gives it to the handler's first RecvMsg. A client that closes without a
// message yields no key.
//
//   - Server-streaming and client-streaming: both work.
//   - Bidirectional, the client speaks first: both work.
//   - Bidirectional, the server speaks first: metadata only. With req both sides
//     would wait for each other until the call's deadline. A descriptor does not
//     tell who speaks first, so [Guard.Check] cannot find that mistake by itself.
//     Name such methods with [WithServerFirst], and it does.
//
// # When the lock is not acquired
//
//	error          the cause's status, or the rule's; one ErrorInfo with the domain
//	               "interlock"; where a retry makes sense RetryInfo, and the trailer
//	               grpc-retry-pushback-ms, which clients with a retry policy obey
//	skip, null     OK. Unary and client-streaming: one empty reply of the method's
//	               type, or of null the rule's response; the others end without a
//	               message. Header x-lock-status: skipped or null
//	fallback       what [WithFallback] or [WithStreamFallback] registered
//	proceed        the handler, unlocked. Header x-lock-status: unlocked
//
// Whether a caller expects a reply its method's descriptor says. Methods that are served
// by a handler of unknown services ([grpc.UnknownServiceHandler]) and have none, such as
// those of a proxy, cannot be skipped or answered with null: a rule that does so is broken
// there, and its calls end as INTERNAL, LOCK_MISCONFIGURED. Give their files to
// [WithDescriptors], or choose another strategy.
//
// A caller whose deadline is over or who is gone gets DEADLINE_EXCEEDED or
// CANCELLED and no strategy. The wait ends before the caller's deadline.
//
// # While it is held
//
// The handler's context carries the lock and ends with the cause [core.ErrLost] when
// the lock is lost, or [core.ErrClosed] when a shutdown does not wait for it. The stream's SendMsg and RecvMsg then fail with the status of
// the loss, one that is blocked in RecvMsg included. (A SendMsg that is blocked by
// flow control fails when the call ends.) To be able to leave a blocked RecvMsg,
// each one runs in a goroutine of its own and its message is copied once; after a
// loss the last one ends with the call. A loss never looks like the client's cancel: the answer is INTERNAL,
// LOCK_LOST, unless the handler finished all the same.
//
// A handler may free the lock early through [Hold]; its context ends then, and
// [Caller] gives the one to go on with. Its stream works on. A panic frees the lock
// and goes on to the recovery outside.
//
// # Start-up
//
// [New] reports bad options and rules that are wrong in themselves. [Guard.Check]
// reports, all at once, what only shows against the registered services: mistakes in
// the options of .proto files, rules for unknown methods, fields that do not exist,
// responses and fallbacks of the wrong type. A method whose rule is broken answers
// INTERNAL and never runs its handler. To find the rules of a method costs one look
// into a map and no allocation, whether it has any or not.
//
// A rule whose methods no interceptor can have guarded, because the program has asked for none
// of their shape, is an error of Check. Check does not see which server has the interceptors:
// where a server was made without them, its methods run without their locks. Let a test show
// it: while redistest.Server.Take has the lock for another holder, the method has to answer
// ABORTED. Or call [core.MustHold] in the handler: it panics without the lock, also where a
// rule is disabled. In production the Decision of an [aspect.Observer], given to [core.WithObserver], says.
//
// A gateway that calls the service in its own process, such as grpc-gateway's
// Register…HandlerServer, passes the interceptors by and takes no lock: let it dial the server
// (Register…HandlerFromEndpoint, or a grpc.ClientConn over bufconn).
//
// A timeout inside the guard, such as an interceptor behind it that answers while the handler
// goes on, frees the lock under that work: put the timeout before the guard, or let the work
// take the lock along with [core.Hold.Handover].
//
// Problems of options name the .proto file. Generated code knows no lines; the
// command `interlock check --descriptors image.binpb` does, and so does a guard whose
// [WithDescriptors] has files with source information.
//
// # Shutdown
//
// In this order: the gRPC server (GracefulStop, or Stop with
// [google.golang.org/grpc.WaitForHandlers]), [core.Client.Close], then the Redis
// client. A lock is never freed under a running handler, whichever way the server is
// stopped.
package grpclock
