package main

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/examples/connect/orderspb"
)

// shop implements the service. The context of each handler is canceled if its lock is lost.
type shop struct{}

var _ orderspb.OrdersHandler = shop{}

// Pay runs once at a time for each order, in all instances.
func (shop) Pay(ctx context.Context, req *orderspb.PayRequest) (*orderspb.PayReply, error) {
	return &orderspb.PayReply{Receipt: "paid " + req.GetOrderId()}, ctx.Err()
}

// Import runs once at a time for each tenant, which a header names.
func (shop) Import(_ context.Context, stream *connect.ClientStream[orderspb.PayRequest]) (*orderspb.PayReply, error) {
	paid := []string{"paid"}
	for stream.Receive() {
		paid = append(paid, stream.Msg().GetOrderId())
	}
	return &orderspb.PayReply{Receipt: strings.Join(paid, " ")}, stream.Err()
}

// Follow runs for one screen at a time.
func (shop) Follow(_ context.Context, req *orderspb.FollowRequest, stream *connect.ServerStream[orderspb.Event]) error {
	for _, what := range []string{"packed ", "sent "} {
		if err := stream.Send(&orderspb.Event{Text: what + req.GetOrderId()}); err != nil {
			return err
		}
	}
	return nil
}

// Show runs without a lock, because no rule names it.
func (shop) Show(_ context.Context, req *orderspb.FollowRequest) (*orderspb.Event, error) {
	return &orderspb.Event{Text: "order " + req.GetOrderId()}, nil
}

// later answers for an import that would have to wait, as a fallback.
func later(_ context.Context, stream connect.StreamingHandlerConn) error {
	return stream.Send(&orderspb.PayReply{Receipt: "later"})
}
