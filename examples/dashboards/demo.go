package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/examples/dashboards/board"
	"github.com/interlock-go/interlock/examples/dashboards/internal/backend"
	"github.com/interlock-go/interlock/examples/dashboards/internal/draw"
	"github.com/interlock-go/interlock/examples/dashboards/internal/pods"
	"github.com/interlock-go/interlock/examples/dashboards/internal/prometheus"
)

// job is the name of the service in Prometheus.
const job = "shop"

// pictureRange is the length of the time range of the picture.
const pictureRange = 5 * time.Minute

// demo holds everything that runs.
type demo struct {
	out     io.Writer
	redis   *backend.Redis
	shop    *pods.Shop
	prom    *prometheus.Server // nil if it is not installed
	picture string             // address of the page that draws the dashboard
	began   time.Time

	closers []func() // called in reverse order
}

// start starts everything. If it fails, it leaves nothing running.
func start(ctx context.Context, s *settings, out io.Writer) (_ *demo, err error) {
	d := &demo{out: out, began: time.Now()}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	redis.SetLogger(silent{})
	if d.redis, err = backend.Open(ctx, s.redis); err != nil {
		return nil, err
	}
	d.later(d.redis.Close)
	if d.shop, err = pods.Open(3, d.redis.Client, slog.New(slog.NewTextHandler(out, nil))); err != nil {
		return nil, err
	}
	d.later(d.shop.Close)
	if err := d.watch(ctx, s); err != nil {
		return nil, err
	}
	return d, nil
}

// watch starts Prometheus. If Prometheus is missing and was not requested, the demo continues without it.
func (d *demo) watch(ctx context.Context, s *settings) error {
	prom, err := prometheus.Start(ctx, prometheus.Config{
		Path: s.prometheus, Targets: d.shop.Addrs(), Rules: prometheus.Quick(rules), Job: job,
	})
	if errors.Is(err, prometheus.ErrMissing) && s.prometheus == "" && s.picture == "" {
		fmt.Fprintf(d.out, "Without Prometheus: %v\n\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	d.prom = prom
	d.later(prom.Close)
	return d.serve()
}

// serve serves the picture of the dashboard, for readers without a Grafana.
func (d *demo) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		svg, err := d.svg(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Refresh", "5")
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, svg) //nolint:errcheck // the browser has disconnected
	})}
	d.picture = "http://" + listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) //nolint:errcheck // Close stops it
	d.later(func() {
		_ = server.Close()
		running.Wait()
	})
	return nil
}

// svg draws the dashboard for the last minutes.
func (d *demo) svg(ctx context.Context) (string, error) {
	over := min(time.Since(d.began), pictureRange)
	from := time.Now().Add(-over)
	return draw.Board(ctx, board.Rows(), func(ctx context.Context, expr string) (model.Matrix, error) {
		return d.prom.Range(ctx, expr, from)
	}, over)
}

func (d *demo) draw(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	svg, err := d.svg(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(svg), 0o644)
}

func (d *demo) introduce() {
	fmt.Fprintf(d.out, "Redis         %s\n              %s\n", d.redis.URL, d.redis.About)
	for i, addr := range d.shop.Addrs() {
		fmt.Fprintf(d.out, "pod %d         http://%s%s   (metrics: /metrics)\n", i+1, addr, pods.PagePath)
	}
	if d.prom != nil {
		fmt.Fprintf(d.out, `Prometheus    %[1]s/alerts, with the rules of rules.yml, whose minutes are %[2]s here
picture       %[3]s, the panels drawn from their queries
Grafana       add %[1]s as a data source, and import dashboards/dashboard.json
`, d.prom.URL, prometheus.Window, d.picture)
	}
	fmt.Fprintf(d.out, "runbooks      export REDIS=%s", d.redis.URL)
	if d.prom != nil {
		fmt.Fprintf(d.out, " PROM=%s", d.prom.URL)
	}
	fmt.Fprintln(d.out)
	fmt.Fprintln(d.out, "\nCtrl-C ends it. The log of the pods and the problems follow.")
}

func (d *demo) later(f func()) { d.closers = append(d.closers, f) }

func (d *demo) close() {
	for _, closer := range slices.Backward(d.closers) {
		closer()
	}
}

// silent stops the Redis client from logging each call that fails while Redis is stopped.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
