package orders

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"github.com/interlock-go/interlock/examples/declared/orderspb"
	"github.com/interlock-go/interlock/grpclock"
)

// openGRPC creates the server. The guard finds the options of orders.proto by itself. The rule
// file overrides them.
func (s *Service) openGRPC(cfg Config) error {
	guard, err := grpclock.New(cfg.Locks, grpclock.WithSet(s.rules))
	if err != nil {
		return err
	}
	s.server = grpc.NewServer(
		grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
	)
	orderspb.RegisterOrdersServer(s.server, &methods{service: s})
	reflection.Register(s.server) // for grpcurl
	return guard.Check(s.server)  // when all services are registered
}

// methods implements the methods of orders.proto.
type methods struct {
	orderspb.UnimplementedOrdersServer
	service *Service
}

func (m *methods) Pay(ctx context.Context, req *orderspb.PayRequest) (*orderspb.PayReply, error) {
	if err := m.service.work(ctx, req.GetOrderId()); err != nil {
		return nil, err
	}
	return &orderspb.PayReply{Receipt: "paid " + req.GetOrderId()}, nil
}

func (m *methods) Ship(ctx context.Context, req *orderspb.ShipRequest) (*orderspb.ShipReply, error) {
	if err := m.service.work(ctx, req.GetOrderId()); err != nil {
		return nil, err
	}
	return &orderspb.ShipReply{Parcels: 1}, nil
}

func (m *methods) Follow(req *orderspb.FollowRequest, stream grpc.ServerStreamingServer[orderspb.Event]) error {
	if err := stream.Send(&orderspb.Event{Text: req.GetOrderId() + " is on its way"}); err != nil {
		return err
	}
	if err := m.service.work(stream.Context(), req.GetOrderId()); err != nil {
		return err
	}
	return stream.Send(&orderspb.Event{Text: req.GetOrderId() + " is there"})
}

func (m *methods) Show(_ context.Context, req *orderspb.ShowRequest) (*orderspb.ShowReply, error) {
	return &orderspb.ShowReply{Text: "order " + req.GetOrderId()}, nil
}
