package pods

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/ginlock"
	"github.com/interlock-go/interlock/grpclock"
)

// routes returns the HTTP endpoints of the shop, the metrics and the live page.
func (p *pod) routes(*slog.Logger) error {
	guard, err := ginlock.New(p.locks)
	if err != nil {
		return err
	}
	r := gin.New()
	r.GET("/metrics", gin.WrapH(p.scraped))
	r.Any(PagePath, gin.WrapH(p.page)) // a real service requires authentication for it
	shop := r.Group("/", gin.Recovery(),
		otelgin.Middleware("shop", otelgin.WithTracerProvider(p.traces), otelgin.WithMeterProvider(p.metrics)),
		guard.Middleware(p.rules))
	shop.POST("/items/:item/buy", takes(sale))
	shop.POST("/items/:item/count", takes(counting))
	shop.POST("/exports", takes(sale))
	shop.POST("/reports/:day", takes(1860*time.Millisecond))
	shop.POST("/coupons/:code", takes(100*time.Millisecond))
	shop.POST("/transfers/:from/:to", p.transfer)
	shop.POST("/orders", takes(sale))
	shop.POST("/baskets/:basket", takes(50*time.Millisecond))
	p.engine = r
	return guard.Check(r) // after all routes are registered
}

const (
	sale     = 20 * time.Millisecond
	counting = 2500 * time.Millisecond
)

// takes returns a handler that works for a time, or until the context of the request is canceled,
// for example because the lock is lost.
func takes(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := pause(c.Request.Context(), d); err != nil {
			_ = c.Error(err) //nolint:errcheck // the error is the cause of the context
			return
		}
		c.Status(http.StatusOK)
	}
}

// transfer locks the two accounts one after the other, in the order in which the request names them. So two transfers in
// opposite directions wait for each other.
func (p *pod) transfer(c *gin.Context) {
	ctx := c.Request.Context()
	err := pause(ctx, 200*time.Millisecond)
	if err == nil {
		err = p.locks.Lock("account:"+c.Param("to")).Do(ctx, func(ctx context.Context) error {
			return pause(ctx, sale)
		}, core.WaitTime(5*time.Second), core.Label("transfer-to"))
	}
	if err != nil {
		_ = c.Error(err) //nolint:errcheck // the error is the cause of the context
		c.Status(http.StatusConflict)
		return
	}
	c.Status(http.StatusOK)
}

// methods registers the gRPC methods of the shop.
func (p *pod) methods(*slog.Logger) error {
	guard, err := grpclock.New(p.locks, grpclock.WithSet(p.rules))
	if err != nil {
		return err
	}
	p.rpcServer = grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(p.traces), otelgrpc.WithMeterProvider(p.metrics))),
		grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()),
	)
	shoppb.RegisterShopServer(p.rpcServer, service{})
	return guard.Check(p.rpcServer)
}

type service struct{ shoppb.UnimplementedShopServer }

// Buy takes as long as the handler of the same name.
func (service) Buy(ctx context.Context, _ *shoppb.BuyRequest) (*shoppb.BuyReply, error) {
	return &shoppb.BuyReply{}, pause(ctx, sale)
}

// pause waits for d. If ctx is done before that, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
