package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/quickstart/shop"
	"github.com/interlock-go/interlock/telemetry"
)

// watchdogLease is short, so that the lock of a killed process expires within the
// demonstration. The default is 30 seconds.
const watchdogLease = 2 * time.Second

// demo holds everything that runs: a Redis, the stock, the instances of the shop, and another
// program that uses the same locks.
type demo struct {
	out     *printer
	log     *journal
	spans   *spanRecorder
	traces  *sdktrace.TracerProvider
	backend *backend
	redis   *redis.Client // reads the locks directly, like redis-cli
	other   *core.Client  // another program with the same locks
	stock   *shop.Stock
	gin     []*instance
	grpc    []*instance

	closers []func() // called in reverse order
}

// start starts everything. If it fails, it leaves nothing running.
func start(ctx context.Context, redisURL string, out io.Writer) (_ *demo, err error) {
	gin.SetMode(gin.ReleaseMode)
	d := &demo{out: &printer{w: out}, spans: &spanRecorder{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	d.log = newJournal(d.out)
	d.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(d.spans))
	d.stock = shop.NewStock(d.traces.Tracer("stock"))
	if err := d.connect(ctx, redisURL); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

// connect opens the Redis and the clients that do not belong to the shop.
func (d *demo) connect(ctx context.Context, url string) (err error) {
	if d.backend, err = openBackend(url); err != nil {
		return err
	}
	d.onClose(d.backend.close)
	d.redis = d.backend.client()
	d.onClose(func() { _ = d.redis.Close() })
	if d.other, err = core.New(d.redis, core.WithPrefix(d.backend.prefix)); err != nil {
		return err
	}
	d.onClose(func() { closeLocks(d.other) })
	return d.other.Ready(ctx)
}

// open starts two instances for Gin and two for gRPC.
func (d *demo) open() error {
	for range 2 {
		g, err := d.openInstance("gin", serveGin)
		if err != nil {
			return err
		}
		d.gin = append(d.gin, g)
		r, err := d.openInstance("grpc", serveGRPC)
		if err != nil {
			return err
		}
		d.grpc = append(d.grpc, r)
	}
	return nil
}

// openInstance starts an instance of the shop with separate lock and Redis clients, as in a
// separate process.
func (d *demo) openInstance(kind string, serve func(*shop.Shop) (*instance, error)) (*instance, error) {
	tel, err := telemetry.New(telemetry.WithTracerProvider(d.traces), telemetry.WithLogger(slog.New(d.log)))
	if err != nil {
		return nil, err
	}
	rdb := d.backend.client()
	d.onClose(func() { _ = rdb.Close() })
	locks, err := core.New(rdb,
		core.WithPrefix(d.backend.prefix),
		core.WithWatchdog(watchdogLease),
		core.WithObserver(tel.Observer()))
	if err != nil {
		return nil, err
	}
	d.onClose(func() { closeLocks(locks) }) // after the server, before the Redis client
	i, err := serve(&shop.Shop{Stock: d.stock, Locks: locks, Log: slog.New(d.log), Traces: d.traces})
	if err != nil {
		return nil, err
	}
	i.kind, i.locks = kind, locks
	d.onClose(i.close)
	return i, nil
}

func closeLocks(locks *core.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = locks.Close(ctx)
}

func (d *demo) onClose(f func()) { d.closers = append(d.closers, f) }

func (d *demo) close() {
	for len(d.closers) > 0 {
		last := len(d.closers) - 1
		d.closers[last]()
		d.closers = d.closers[:last]
	}
}

func (d *demo) instances() []*instance {
	return []*instance{d.gin[0], d.grpc[0], d.gin[1], d.grpc[1]}
}

// introduce prints the participants.
func (d *demo) introduce() {
	d.out.titlef("A shop in four instances over one stock")
	for _, i := range d.instances() {
		d.out.linef("%-5s %s  lock client %s", i.kind, i.addr, i.locks.ID())
	}
	d.out.linef("redis %s", d.backend.about)
}
