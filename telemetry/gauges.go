package telemetry

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
)

// observeClient adds a client to the gauges distributed_lock.oldest_wait, longest_hold and
// client.info, which are read when metrics are collected, until the client is closed.
func (t *Telemetry) observeClient(client *core.Client) (closed func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[client] = metric.WithAttributeSet(attribute.NewSet(attrClientID.String(client.ID())))
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.clients, client)
	}
}

// collect reads the gauges.
func (t *Telemetry) collect(ctx context.Context, o metric.Observer) error {
	t.beginSeries(ctx)
	for _, r := range t.rules.all() {
		o.ObserveInt64(t.inst.waiters, r.waiting.Load(), r.observe...)
		o.ObserveInt64(t.inst.held, r.held.Load(), r.observe...)
	}
	t.collectReloads(o)
	t.collectRules(o)
	t.mu.Lock()
	clients := maps.Clone(t.clients)
	t.mu.Unlock()
	for client, labels := range clients {
		stats := client.Stats()
		o.ObserveFloat64(t.inst.oldestWait, stats.OldestWait.Seconds(), labels)
		o.ObserveFloat64(t.inst.longestHold, stats.OldestHold.Seconds(), labels)
		o.ObserveInt64(t.inst.clientInfo, 1, labels)
	}
	return nil
}
