package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/examples/wiring"
)

// shop takes orders over HTTP and calls the stock service for each.
type shop struct {
	addr  string
	locks *core.Client
	close func() // waits for the last request

	contended waits
}

// waits gets a value for each order that finds the lock taken. It is an observer of locks.
type waits chan struct{}

func (w waits) observer() *core.Observer { return &core.Observer{Contention: w.observeContention} }

// observeContention reports a wait. The buffer of the channel has room for all orders.
func (w waits) observeContention(context.Context, core.Contention) {
	select {
	case w <- struct{}{}:
	default:
	}
}

func startShop(ctx context.Context, rdb *redis.Client, all *traces, stockAddr string) (*shop, error) {
	traces, err := all.provider(ctx, "shop")
	if err != nil {
		return nil, err
	}
	contended := make(waits, 2)
	locks, err := lockClient(rdb, traces, contended.observer())
	if err != nil {
		return nil, err
	}
	engine, guard, err := wiring.Gin(locks, traces)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(stockAddr, grpc.WithTransportCredentials(insecure.NewCredentials()), wiring.Traced(traces))
	if err != nil {
		return nil, err
	}
	stock := shoppb.NewShopClient(conn)
	order := ruleset.Rule{Name: "order", Key: "item:#{path.item}", WaitTime: 30 * time.Second}
	engine.POST("/items/:item/order", guard.Handler(order), func(c *gin.Context) {
		reply, err := stock.Buy(c.Request.Context(), &shoppb.BuyRequest{Item: c.Param("item")})
		if err != nil {
			_ = c.Error(err) //nolint:errcheck // returns its argument
			return
		}
		c.JSON(http.StatusOK, gin.H{"left": reply.GetLeft()})
	})
	if err := guard.Check(engine); err != nil {
		return nil, err
	}
	s := &shop{locks: locks, contended: contended}
	err = s.serve(ctx, engine, conn)
	return s, err
}

func (s *shop) serve(ctx context.Context, engine http.Handler, conn *grpc.ClientConn) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = listener.Addr().String()
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 10 * time.Second}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) //nolint:errcheck // close stops it
	s.close = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) //nolint:errcheck // open connections end with the program
		running.Wait()
		_ = s.locks.Close(ctx)
		_ = conn.Close()
	})
	return nil
}
