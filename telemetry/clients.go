package telemetry

import (
	"maps"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
)

// openClients reports the open lock clients: the metrics oldest_wait, longest_hold and client.info.
type openClients struct {
	inst *instruments

	mu     sync.Mutex
	labels map[*core.Client]metric.MeasurementOption
}

func newOpenClients(inst *instruments) *openClients {
	return &openClients{inst: inst, labels: make(map[*core.Client]metric.MeasurementOption)}
}

// observe adds a client. The returned function, which core calls when the client is closed,
// removes it.
func (o *openClients) observe(client *core.Client) (closed func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.labels[client] = metric.WithAttributeSet(attribute.NewSet(attrClientID.String(client.ID())))
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.labels, client)
	}
}

// collect reports the gauges of all clients.
func (o *openClients) collect(m metric.Observer) {
	o.mu.Lock()
	clients := maps.Clone(o.labels)
	o.mu.Unlock()
	for client, labels := range clients {
		stats := client.Stats()
		m.ObserveFloat64(o.inst.oldestWait, stats.OldestWait.Seconds(), labels)
		m.ObserveFloat64(o.inst.longestHold, stats.OldestHold.Seconds(), labels)
		m.ObserveInt64(o.inst.clientInfo, 1, labels)
	}
}
