package grpclock_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// One rule, one guard, two interceptors, one check. The second call comes while
// another holder has the lock of the order.
func Example() {
	redis, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()
	locks, err := core.New(redis.Client())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	guard, err := grpclock.New(locks, grpclock.WithRules(ruleset.Rule{
		Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"),
		Key:      "order_lock_#{req.order_id}",
		WaitTime: ruleset.NoWait, LeaseTime: 30 * time.Second,
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
	)
	shoppb.RegisterOrdersServer(server, &shop{})
	if err := guard.Check(server); err != nil {
		fmt.Println(err)
		return
	}

	orders, stop := connect(server)
	defer stop()
	pay := shoppb.PayRequest_builder{OrderId: "42"}.Build()
	receipt, err := orders.Pay(context.Background(), pay)
	fmt.Println(receipt.GetReceipt(), err)

	redis.Take("order_lock_42", time.Minute)
	_, err = orders.Pay(context.Background(), pay)
	fmt.Println(status.Code(err), status.Convert(err).Message())
	// Output:
	// paid 42 <nil>
	// Aborted Another request for the same resource is in progress
}

// The lock of one method, without a guard. The second call comes while another holder has the lock of the order.
func ExampleLock() {
	locks, stop := exampleLocks("order:pay:43")
	defer stop()
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(
		grpclock.Lock(locks, shoppb.Orders_Pay_FullMethodName, "order:pay:#{req.order_id}", ruleset.Rule{WaitTime: ruleset.NoWait})))
	shoppb.RegisterOrdersServer(server, &shop{})
	orders, disconnect := connect(server)
	defer disconnect()

	for _, id := range []string{"42", "43"} {
		receipt, err := orders.Pay(context.Background(), shoppb.PayRequest_builder{OrderId: id}.Build())
		fmt.Printf("%q %s\n", receipt.GetReceipt(), status.Code(err))
	}
	// Output:
	// "paid 42" OK
	// "" Aborted
}

// connect serves a server in memory and connects a client to it.
func connect(server *grpc.Server) (orders shoppb.OrdersClient, stop func()) {
	listener := bufconn.Listen(1 << 16)
	go server.Serve(listener)
	conn, err := grpc.NewClient("passthrough:///memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		panic(err)
	}
	return shoppb.NewOrdersClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}
}

// exampleLocks returns a lock client on an embedded Redis, in which another holder has the given locks.
func exampleLocks(taken ...string) (locks *core.Client, stop func()) {
	redis, err := redistest.Start()
	if err != nil {
		panic(err)
	}
	for _, name := range taken {
		redis.Take(name, time.Minute)
	}
	if locks, err = core.New(redis.Client()); err != nil {
		panic(err)
	}
	return locks, func() {
		_ = locks.Close(context.Background())
		redis.Close()
	}
}

// serveExample serves a shop behind a guard.
func serveExample(locks *core.Client, s *shop, opts ...grpclock.Option) (orders shoppb.OrdersClient, stop func()) {
	guard, err := grpclock.New(locks, opts...)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(guard.UnaryServerInterceptor()), grpc.StreamInterceptor(guard.StreamServerInterceptor()))
	shoppb.RegisterOrdersServer(server, s)
	if err := guard.Check(server); err != nil {
		panic(err)
	}
	return connect(server)
}

func ExampleWithFallback() {
	locks, stop := exampleLocks("order:42")
	defer stop()
	orders, disconnect := serveExample(locks, &shop{},
		grpclock.WithFallback("queue", func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
			out, _ := aspect.OutcomeFrom(ctx)
			return shoppb.PayReply_builder{Receipt: fmt.Sprintf("%s: queued %s", out.Cause, req.GetOrderId())}.Build(), nil
		}),
		grpclock.WithRules(ruleset.Rule{
			Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "order:#{req.order_id}",
			WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "queue",
		}))
	defer disconnect()

	got, err := orders.Pay(context.Background(), shoppb.PayRequest_builder{OrderId: "42"}.Build())
	fmt.Println(got.GetReceipt(), err)
	// Output: busy: queued 42 <nil>
}

func ExampleWithVariable() {
	locks, stop := exampleLocks("basket:ada")
	defer stop()
	principal := func(ctx context.Context) (string, error) { // the user that the authentication has found
		users := metadata.ValueFromIncomingContext(ctx, "x-user")
		if len(users) == 0 {
			return "", nil
		}
		return users[0], nil
	}
	orders, disconnect := serveExample(locks, &shop{},
		grpclock.WithVariable("principal", principal),
		grpclock.WithRules(ruleset.Rule{
			Endpoint: ruleset.GRPC("/shop.v1.Orders/*"), Key: "basket:#{principal}", WaitTime: ruleset.NoWait,
		}))
	defer disconnect()

	for _, user := range []string{"ada", "bob"} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-user", user)
		_, err := orders.Pay(ctx, shoppb.PayRequest_builder{OrderId: "42"}.Build())
		fmt.Println(user, status.Code(err))
	}
	// Output:
	// ada Aborted
	// bob OK
}

func ExampleGuard_Check() {
	locks, stop := exampleLocks()
	defer stop()
	guard, err := grpclock.New(locks, grpclock.WithRules(
		ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "order:#{req.ordr_id}"},
		ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Trak"), Key: "order:#{req.order_id}"},
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.StreamInterceptor(guard.StreamServerInterceptor()),
	)
	shoppb.RegisterOrdersServer(server, &shop{})
	fmt.Println(guard.Check(server))
	// Output:
	// ruleset: 2 problems
	// 	rule of grpc /shop.v1.Orders/Pay: Key: 1:13: shop.v1.PayRequest has no field ordr_id: there are amount, order_id, skus
	// 	  | order:#{req.ordr_id}
	// 	  |             ^
	// 	  write req.order_id
	// 	rule of grpc /shop.v1.Orders/Trak: Endpoint: matches no method: did you mean "/shop.v1.Orders/Track"?
}

// A handler that needs the lock only for its first part.
func ExampleHold() {
	locks, stop := exampleLocks()
	defer stop()
	orders, disconnect := serveExample(locks, &shop{pay: func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
		hold := grpclock.Hold(ctx)
		// … charge …
		if err := hold.Release(ctx); err != nil {
			return nil, err
		}
		ctx = grpclock.Caller(ctx) // … and print the receipt without the lock
		return shoppb.PayReply_builder{Receipt: "receipt " + req.GetOrderId()}.Build(), ctx.Err()
	}}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "order:#{req.order_id}"}))
	defer disconnect()

	got, err := orders.Pay(context.Background(), shoppb.PayRequest_builder{OrderId: "42"}.Build())
	fmt.Println(got.GetReceipt(), err)
	// Output: receipt 42 <nil>
}

// A rule file. With ruleset.Watch instead of ruleset.Load, the guard follows its
// changes.
func ExampleWithSet() {
	locks, stop := exampleLocks()
	defer stop()
	set, err := ruleset.Load("locks.yaml", []byte(`
rules:
  - grpc: /shop.v1.Orders/Pay
    key: "order:#{req.order_id}"
    wait_time: 2s
  - grpc: /shop.v1.Orders/Trak
    key: "order:#{req.order_id}"
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := grpclock.New(locks, grpclock.WithSet(set))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.StreamInterceptor(guard.StreamServerInterceptor()),
	)
	shoppb.RegisterOrdersServer(server, &shop{})
	fmt.Println(guard.Check(server))
	// Output:
	// ruleset: locks.yaml:6:11: rule of grpc /shop.v1.Orders/Trak: grpc: matches no method: did you mean "/shop.v1.Orders/Track"?
}
