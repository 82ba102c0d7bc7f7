package pods

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// watchdog is the lease time. The default is 30 seconds. It is shorter here, so that a lost lock is noticed
// during the demonstration.
const watchdog = 3 * time.Second

// pod is an instance of the shop with everything that a real pod has: a lock client, metrics, traces and a rule file.
type pod struct {
	ruleFile string
	redis    *redis.Client
	locks    *core.Client
	metrics  *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider
	observer *telemetry.Telemetry
	page     *lockz.Page
	scraped  http.Handler
	rules    *ruleset.Live

	engine           *gin.Engine
	web, rpc         net.Listener
	webServer        *http.Server
	rpcServer        *grpc.Server
	webAddr, rpcAddr string
	running          sync.WaitGroup

	closers []func() // called in reverse order
}

func startPod(rdb *redis.Client, ruleFile string, log *slog.Logger) (_ *pod, err error) {
	p := &pod{redis: rdb, ruleFile: ruleFile}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := p.listen(); err != nil {
		return nil, err
	}
	log = slog.New(traceHandler{log.Handler()}).With("instance", p.webAddr) // the name of the pod in Prometheus
	for _, step := range []func(*slog.Logger) error{p.observe, p.connect, p.load, p.routes, p.methods, p.serve} {
		if err := step(log); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// observe connects OpenTelemetry with Prometheus. The handler supports OpenMetrics, because otherwise Prometheus gets no
// exemplars.
func (p *pod) observe(log *slog.Logger) (err error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	p.scraped = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	p.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	p.traces = sdktrace.NewTracerProvider()
	p.observer, err = telemetry.New(
		telemetry.WithMeterProvider(p.metrics), telemetry.WithTracerProvider(p.traces), telemetry.WithLogger(log))
	if err != nil {
		return err
	}
	p.page, err = lockz.New(lockz.WithMeterProvider(p.metrics), lockz.WithLogger(log),
		lockz.WithRawKeys(), lockz.WithFleet(), lockz.WithAuthorizer(fromHere))
	return err
}

// fromHere allows requests from this machine to release locks by force. A real service authenticates operators.
func fromHere(r *http.Request) error {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !addr.Addr().IsLoopback() {
		return errors.New("only from this machine")
	}
	return nil
}

func (p *pod) connect(*slog.Logger) (err error) {
	p.later(func() { _ = p.redis.Close() })
	p.locks, err = core.New(p.redis,
		core.WithPrefix(Prefix), core.WithWatchdog(watchdog), core.WithObserver(p.observer.Observer(), p.page.Observer()))
	if err != nil {
		return err
	}
	p.later(func() {
		ctx, cancel := patience()
		defer cancel()
		_ = p.locks.Close(ctx) // locks that are still held expire with their leases
	})
	return nil
}

func (p *pod) load(*slog.Logger) (err error) {
	p.rules, err = ruleset.Watch(p.ruleFile)
	if err == nil {
		p.later(func() { _ = p.rules.Close() })
	}
	return err
}

// listen opens a free port for each of the two servers.
func (p *pod) listen() error {
	for _, at := range []struct {
		listener *net.Listener
		addr     *string
	}{{&p.web, &p.webAddr}, {&p.rpc, &p.rpcAddr}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*at.listener, *at.addr = l, l.Addr().String()
		p.later(func() { l.Close() }) // already closed if its server ran
	}
	return nil
}

// serve starts both servers.
func (p *pod) serve(log *slog.Logger) error {
	p.webServer = &http.Server{Handler: p.engine, ReadHeaderTimeout: 10 * time.Second}
	p.running.Go(func() {
		if err := p.webServer.Serve(p.web); !errors.Is(err, http.ErrServerClosed) {
			log.Error("HTTP server", "error", err)
		}
	})
	p.running.Go(func() {
		if err := p.rpcServer.Serve(p.rpc); err != nil {
			log.Error("gRPC server", "error", err)
		}
	})
	p.later(func() {
		_ = p.webServer.Close()
		p.rpcServer.Stop()
		p.running.Wait()
	})
	return nil
}

func (p *pod) later(f func()) { p.closers = append(p.closers, f) }

func (p *pod) close() {
	for _, closer := range slices.Backward(p.closers) {
		closer()
	}
}
