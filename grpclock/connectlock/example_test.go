package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// orders is a service. newOrdersHandler creates its handlers as generated code does.
type orders struct{}

// Pay runs once at a time for each order.
func (orders) Pay(_ context.Context, req *connect.Request[shoppb.PayRequest]) (*connect.Response[shoppb.PayReply], error) {
	return connect.NewResponse(shoppb.PayReply_builder{Receipt: "paid " + req.Msg.GetOrderId()}.Build()), nil
}

// Track runs once at a time for each tenant. The header names the tenant.
func (orders) Track(_ context.Context, req *connect.Request[shoppb.PayRequest], stream *connect.ServerStream[shoppb.PayReply]) error {
	return stream.Send(shoppb.PayReply_builder{Receipt: "packed " + req.Msg.GetOrderId()}.Build())
}

// newOrdersHandler is the function that protoc-gen-connect-go generates.
func newOrdersHandler(svc orders, opts ...connect.HandlerOption) (string, http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/shop.v1.Orders/Pay", connect.NewUnaryHandler("/shop.v1.Orders/Pay", svc.Pay, opts...))
	mux.Handle("/shop.v1.Orders/Track", connect.NewServerStreamHandler("/shop.v1.Orders/Track", svc.Track, opts...))
	return "/shop.v1.Orders/", mux
}

// A whole service: rules, a guard, its interceptor, the check. Clients call it while
// other holders have the locks.
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

	guard, err := connectlock.New(locks, connectlock.WithRules(
		ruleset.Rule{
			Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "order_lock_#{req.order_id}",
			WaitTime: ruleset.NoWait, LeaseTime: 30 * time.Second,
		},
		ruleset.Rule{
			Endpoint: ruleset.GRPC("/shop.v1.Orders/Track"), Key: `tenant_#{metadata["x-tenant"]}`,
			WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip,
		},
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle(newOrdersHandler(orders{}, connect.WithInterceptors(guard.Interceptor())))
	if err := guard.Check("shop.v1.Orders"); err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	pay := connect.NewClient[shoppb.PayRequest, shoppb.PayReply](server.Client(), server.URL+"/shop.v1.Orders/Pay")
	order := shoppb.PayRequest_builder{OrderId: "42"}.Build()
	paid, err := pay.CallUnary(context.Background(), connect.NewRequest(order))
	fmt.Println(paid.Msg.GetReceipt(), err)

	redis.Take("order_lock_42", time.Minute)
	_, err = pay.CallUnary(context.Background(), connect.NewRequest(order))
	refused := new(connect.Error)
	fmt.Println(errors.As(err, &refused), err, refused.Meta().Get("Retry-After") != "")

	redis.Take("tenant_a", time.Minute)
	track := connect.NewClient[shoppb.PayRequest, shoppb.PayReply](server.Client(), server.URL+"/shop.v1.Orders/Track")
	request := connect.NewRequest(order)
	request.Header().Set("X-Tenant", "a")
	steps, err := track.CallServerStream(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer steps.Close()
	fmt.Println(steps.Receive(), steps.Err(), steps.ResponseHeader().Get(failpolicy.StatusHeader))
	// Output:
	// paid 42 <nil>
	// true aborted: Another request for the same resource is in progress true
	// false <nil> skipped
}

// The lock of one procedure, without a guard. The second call comes while another holder has the lock of the order.
func ExampleLock() {
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

	lock := connectlock.Lock(locks, "/shop.v1.Orders/Pay", "order:pay:#{req.order_id}", ruleset.Rule{WaitTime: ruleset.NoWait})
	mux := http.NewServeMux()
	mux.Handle(newOrdersHandler(orders{}, connect.WithInterceptors(lock)))
	server := httptest.NewServer(mux)
	defer server.Close()

	redis.Take("order:pay:43", time.Minute)
	pay := connect.NewClient[shoppb.PayRequest, shoppb.PayReply](server.Client(), server.URL+"/shop.v1.Orders/Pay")
	for _, id := range []string{"42", "43"} {
		paid, err := pay.CallUnary(context.Background(), connect.NewRequest(shoppb.PayRequest_builder{OrderId: id}.Build()))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(paid.Msg.GetReceipt())
	}
	// Output:
	// paid 42
	// aborted: Another request for the same resource is in progress
}
