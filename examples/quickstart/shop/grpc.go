package shop

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

// GRPC returns the gRPC server of the shop and its guard, which has the kill switch.
func (s *Shop) GRPC() (*grpc.Server, *grpclock.Guard, error) {
	guard, err := grpclock.New(s.Locks,
		grpclock.WithRules(grpcRules()...),
		grpclock.WithFallback("waiting-list", queueUp))
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(s.Traces))),
		grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
	)
	shoppb.RegisterShopServer(server, &service{shop: s})
	reflection.Register(server) // for grpcurl
	err = guard.Check(server)   // reports every problem of every rule before the server starts
	return server, guard, err
}

// grpcRules returns the rules of http.go for the methods. They have the same keys, so they use the same
// locks.
func grpcRules() []ruleset.Rule {
	const key = "stock:#{req.item}"
	reserve := func(method string, onBusy failpolicy.Strategy) ruleset.Rule {
		rule := reservation(onBusy)
		rule.Endpoint, rule.Key = ruleset.GRPC(method), key
		return rule
	}
	return []ruleset.Rule{
		{Endpoint: ruleset.GRPC(shoppb.Shop_Buy_FullMethodName), Name: "buy", Key: key, WaitTime: 30 * time.Second},
		{Endpoint: ruleset.GRPC(shoppb.Shop_Count_FullMethodName), Name: "count", Key: key, WaitTime: ruleset.NoWait},
		{Endpoint: ruleset.GRPC(shoppb.Shop_Reprice_FullMethodName), Name: "reprice", Key: key, LeaseTime: 500 * time.Millisecond},
		reserve(shoppb.Shop_ReserveOrFail_FullMethodName, failpolicy.Error),
		reserve(shoppb.Shop_ReserveOrSkip_FullMethodName, failpolicy.Skip),
		reserve(shoppb.Shop_ReserveOrNull_FullMethodName, failpolicy.NullResponse),
		reserve(shoppb.Shop_ReserveOrQueue_FullMethodName, failpolicy.Fallback),
		reserve(shoppb.Shop_ReserveAnyway_FullMethodName, failpolicy.Proceed),
	}
}

// queueUp runs instead of a reservation, without the lock.
func queueUp(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return &shoppb.ReserveReply{Receipt: "on the waiting list for " + req.GetItem()}, nil
}

// service implements the methods with the shop.
type service struct {
	shoppb.UnimplementedShopServer
	shop *Shop
}

func (s *service) Buy(ctx context.Context, req *shoppb.BuyRequest) (*shoppb.BuyReply, error) {
	left, err := s.shop.buy(ctx, req.GetItem())
	if errors.Is(err, ErrSoldOut) {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &shoppb.BuyReply{Left: int32(left)}, err
}

func (s *service) Count(ctx context.Context, req *shoppb.CountRequest) (*shoppb.CountReply, error) {
	left, err := s.shop.count(ctx, req.GetItem(), time.Duration(req.GetMilliseconds())*time.Millisecond)
	return &shoppb.CountReply{Left: int32(left)}, err
}

func (s *service) Reprice(ctx context.Context, req *shoppb.CountRequest) (*shoppb.CountReply, error) {
	return s.Count(ctx, req)
}

func (s *service) ReserveOrFail(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return reserved(req), nil
}

func (s *service) ReserveOrSkip(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return reserved(req), nil
}

func (s *service) ReserveOrNull(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return reserved(req), nil
}

func (s *service) ReserveOrQueue(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return reserved(req), nil
}

func (s *service) ReserveAnyway(_ context.Context, req *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	return reserved(req), nil
}

func reserved(req *shoppb.ReserveRequest) *shoppb.ReserveReply {
	return &shoppb.ReserveReply{Receipt: "reserved " + req.GetItem()}
}
