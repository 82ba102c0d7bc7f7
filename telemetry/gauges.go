package telemetry

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
)

// watched is a client whose gauges are read.
type watched struct {
	client *core.Client
	labels metric.MeasurementOption
}

// Watch adds a client to the gauges distributed_lock.oldest_wait and
// distributed_lock.client.info, which are read when metrics are collected. stop
// takes it out; call it when the client is closed. A nil client is not watched.
func (t *Telemetry) Watch(client *core.Client) (stop func()) {
	if client == nil {
		return func() {}
	}
	w := &watched{client: client, labels: metric.WithAttributeSet(attribute.NewSet(attrClientID.String(client.ID())))}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = append(t.clients, w)
	return sync.OnceFunc(func() { t.unwatch(w) })
}

func (t *Telemetry) unwatch(w *watched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = slices.DeleteFunc(t.clients, func(c *watched) bool { return c == w })
}

// register has the gauges read at each collection.
func (t *Telemetry) register(m metric.Meter) (metric.Registration, error) {
	i := t.inst
	return m.RegisterCallback(t.collect, i.waiters, i.held, i.rules, i.oldestWait, i.clientInfo, i.reload)
}

func (t *Telemetry) collect(_ context.Context, o metric.Observer) error {
	for _, r := range t.rules.all() {
		o.ObserveInt64(t.inst.waiters, r.waiting.Load(), r.observe...)
		o.ObserveInt64(t.inst.held, r.held.Load(), r.observe...)
	}
	t.collectReloads(o)
	clients, states := t.snapshot()
	for state, n := range states {
		o.ObserveInt64(t.inst.rules, n, metric.WithAttributes(attrState.String(state)))
	}
	for _, w := range clients {
		o.ObserveFloat64(t.inst.oldestWait, w.client.Stats().OldestWait.Seconds(), w.labels)
		o.ObserveInt64(t.inst.clientInfo, 1, w.labels)
	}
	return nil
}

// snapshot reads what the mutex guards; each client's Stats has locks of its own.
func (t *Telemetry) snapshot() ([]*watched, map[string]int64) {
	states := map[string]int64{stateEnabled: 0, stateDisabled: 0, stateDryRun: 0}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.states {
		states[s]++
	}
	return slices.Clone(t.clients), states
}
