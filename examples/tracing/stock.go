package main

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/examples/wiring"
	"github.com/interlock-go/interlock/telemetry"
)

// prefix is the prefix of all keys, so that the example can use a Redis that has other keys.
const prefix = "tracing:"

// lockClient creates the lock client of a service with separate telemetry, as in a separate process.
func lockClient(rdb *redis.Client, traces trace.TracerProvider, observers ...*core.Observer) (*core.Client, error) {
	tel, err := telemetry.New(telemetry.WithTracerProvider(traces))
	if err != nil {
		return nil, err
	}
	return core.New(rdb, core.WithPrefix(prefix), core.WithObserver(append(observers, tel.Observer())...))
}

// stock is the stock service.
type stock struct {
	shoppb.UnimplementedShopServer

	addr     string
	close    func()        // waits for the last call
	counting chan struct{} // closed when the count has started under its lock
	counted  chan struct{} // closed when the count may end
	taking   chan struct{} // gets a value for each spoon that is about to be taken under its lock
	taken    chan struct{} // closed when these calls may end
}

func startStock(ctx context.Context, rdb *redis.Client, all *traces) (*stock, error) {
	traces, err := all.provider(ctx, "stock")
	if err != nil {
		return nil, err
	}
	locks, err := lockClient(rdb, traces)
	if err != nil {
		return nil, err
	}
	server, guard, err := wiring.GRPC(locks, traces,
		ruleset.Rule{Endpoint: ruleset.GRPC(shoppb.Shop_Count_FullMethodName), Name: "count", Key: "item:#{req.item}"},
		ruleset.Rule{Endpoint: ruleset.GRPC(shoppb.Shop_Buy_FullMethodName), Name: "take", Key: "shelf:#{req.item}"},
	)
	if err != nil {
		return nil, err
	}
	s := &stock{counting: make(chan struct{}), counted: make(chan struct{}), taking: make(chan struct{}, 2), taken: make(chan struct{})}
	shoppb.RegisterShopServer(server, s)
	if err := guard.Check(server); err != nil {
		return nil, err
	}
	err = s.serve(ctx, server, locks)
	return s, err
}

func (s *stock) serve(ctx context.Context, server *grpc.Server, locks *core.Client) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) //nolint:errcheck // close stops it
	s.close = sync.OnceFunc(func() {
		server.GracefulStop()
		running.Wait()
		_ = locks.Close(context.WithoutCancel(ctx))
	})
	return nil
}

// Count counts until the demonstration lets it return.
func (s *stock) Count(ctx context.Context, _ *shoppb.CountRequest) (*shoppb.CountReply, error) {
	close(s.counting)
	return &shoppb.CountReply{Left: 7}, until(ctx, s.counted)
}

// Buy takes a spoon from the shelf. It also returns only when the demonstration lets it.
func (s *stock) Buy(ctx context.Context, _ *shoppb.BuyRequest) (*shoppb.BuyReply, error) {
	s.taking <- struct{}{}
	return &shoppb.BuyReply{Left: 6}, until(ctx, s.taken)
}

func until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
