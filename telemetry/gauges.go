package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
)

// watched is an open client, whose gauges are read.
type watched struct {
	client *core.Client
	labels metric.MeasurementOption
}

// observeClient adds a client to the gauges distributed_lock.oldest_wait, longest_hold and
// client.info, which are read when metrics are collected, until the client is closed.
func (t *Telemetry) observeClient(client *core.Client) (closed func()) {
	w := &watched{client: client, labels: metric.WithAttributeSet(attribute.NewSet(attrClientID.String(client.ID())))}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = append(t.clients, w)
	return func() { t.unwatch(w) }
}

func (t *Telemetry) unwatch(w *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = slices.DeleteFunc(t.clients, func(c *watched) bool { return c == w })
}

// register has the gauges read at each collection.
func (t *Telemetry) register(m metric.Meter) (metric.Registration, error) {
	return m.RegisterCallback(t.collect, t.inst.observables()...)
}

func (t *Telemetry) collect(ctx context.Context, o metric.Observer) error {
	t.beginSeries(ctx)
	for _, r := range t.rules.all() {
		o.ObserveInt64(t.inst.waiters, r.waiting.Load(), r.observe...)
		o.ObserveInt64(t.inst.held, r.held.Load(), r.observe...)
	}
	t.collectReloads(o)
	t.collectRules(o)
	for _, w := range t.watched() {
		stats := w.client.Stats()
		o.ObserveFloat64(t.inst.oldestWait, stats.OldestWait.Seconds(), w.labels)
		o.ObserveFloat64(t.inst.longestHold, stats.OldestHold.Seconds(), w.labels)
		o.ObserveInt64(t.inst.clientInfo, 1, w.labels)
	}
	return nil
}

// watched are the clients now; each one's Stats has locks of its own.
func (t *Telemetry) watched() []*watched {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.clients)
}
