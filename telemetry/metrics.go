package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Metric describes a metric, for programs that draw dashboards, write alerts or check the emitted metrics.
type Metric struct {
	Name       string    // in OpenTelemetry, such as distributed_lock.wait.duration
	Prometheus string    // the name that OpenTelemetry's exporter for Prometheus gives it; for a histogram without _bucket, _sum and _count
	Type       string    // histogram, counter, updowncounter or gauge
	Unit       string    // s, 1, or {noun} for a count
	Labels     []string  // attributes, such as distributed_lock.rule; Prometheus writes a dot as _
	Meaning    string    // one line, also the description of the metric
	Buckets    []float64 // boundaries of a histogram, in its unit
	Scope      string    // instrumentation scope: the path of the package that records the metric, which is this one or lockz
}

// Metrics describes all metrics in the order of the table in the package comment: the metrics of a [Telemetry], and the counter of
// package lockz. It returns a new slice.
func Metrics() []Metric {
	table := new(instruments).table()
	list := make([]Metric, 0, len(table)+1)
	for i := range table {
		list = append(list, table[i].describe(scopeName))
	}
	ofPage := definition{new(metric.Int64Counter), "distributed_lock.deadlocks", "{deadlock}", "", "rings of callers that wait for each other; made by package lockz", nil}
	return append(list, ofPage.describe(scopeName+"/lockz"))
}

// definition is a row of the table from which the instruments are created.
type definition struct {
	into    any // pointer to the instrument, whose type is the type of the metric
	name    string
	unit    string
	labels  string // without attrPrefix, separated by spaces
	meaning string
	buckets []float64
}

const (
	ruleLabels    = "rule kind"
	outcomeLabels = ruleLabels + " outcome"
	seconds       = "s"
)

// table defines the metrics of a Telemetry. [Metrics] adds the metrics of package lockz.
func (i *instruments) table() []definition {
	return []definition{
		{&i.wait, "distributed_lock.wait.duration", seconds, outcomeLabels, "time in Acquire, including failures", durationBuckets()},
		{&i.acquire, "distributed_lock.acquire.duration", seconds, ruleLabels, "round trip of an uncontended acquisition: is Redis slow?", durationBuckets()},
		{&i.hold, "distributed_lock.hold.duration", seconds, outcomeLabels, "from the acquisition to the release", durationBuckets()},
		{&i.remaining, "distributed_lock.lease.remaining.ratio", "1", ruleLabels, "part of the lease that was left at the release; 0 if the lock was lost", ratios()},
		{&i.waiters, "distributed_lock.waiters", "{waiter}", ruleLabels, "callers that are waiting", nil},
		{&i.held, "distributed_lock.held", "{hold}", ruleLabels, "holds that have not ended, without re-entries", nil},
		{&i.oldestWait, "distributed_lock.oldest_wait", seconds, "client.id", "how long the caller that waits longest has waited", nil},
		{&i.longestHold, "distributed_lock.longest_hold", seconds, "client.id", "age of the oldest hold", nil},
		{&i.renewals, "distributed_lock.renewals", "{renewal}", outcomeLabels, "renewals of leases: renewed, late, failed", nil},
		{&i.lost, "distributed_lock.lost", "{hold}", ruleLabels, "holds that lost their lock", nil},
		{&i.heldTooLong, "distributed_lock.held_too_long", "{hold}", ruleLabels, "holds that were held for longer than their limit (MaxHold)", nil},
		{&i.leaks, "distributed_lock.leaks", "{hold}", ruleLabels, "holds that were garbage-collected without a release", nil},
		{&i.releaseFailures, "distributed_lock.release.failures", "{failure}", ruleLabels, "releases that Redis did not confirm", nil},
		{&i.failures, "distributed_lock.failures", "{failure}", ruleLabels + " cause strategy", "locks that were not acquired or were lost, and the strategy that answered", nil},
		{&i.unlocked, "distributed_lock.unlocked", "{call}", ruleLabels + " reason", "handlers that ran without their lock: proceed, disabled, dry_run, when", nil},
		{&i.handoffs, "distributed_lock.handoffs", "{handoff}", ruleLabels, "locks that went to another caller of the process, by a script or in memory", nil},
		{&i.dryRuns, "distributed_lock.dry_runs", "{call}", outcomeLabels, "what rules in dry run would have done: acquired, busy, …", nil},
		{&i.rules, "distributed_lock.rules", "{rule}", "state", "compiled rules: enabled, disabled, dry_run", nil},
		{&i.waitTime, "distributed_lock.rule.wait_time", seconds, ruleLabels, "longest wait of a call; no series if it does not wait, or waits for ever", nil},
		{&i.leaseTime, "distributed_lock.rule.lease_time", seconds, ruleLabels, "fixed lease of the rule; no series if the lease is renewed", nil},
		{&i.reload, "distributed_lock.reload.timestamp", seconds, "hash", "when the rule file in force was loaded, Unix time", nil},
		{&i.reloads, "distributed_lock.reloads", "{reload}", "outcome", "loads of a rule file: applied, refused", nil},
		{&i.clientInfo, "distributed_lock.client.info", "{client}", "client.id", "1 for each open client; its id begins the holder fields in Redis", nil},
	}
}

func (d *definition) describe(scope string) Metric {
	m := Metric{Name: d.name, Type: d.metricType(), Unit: d.unit, Meaning: d.meaning, Buckets: d.buckets, Scope: scope}
	m.Prometheus = prometheusName(&m)
	for label := range strings.FieldsSeq(d.labels) {
		m.Labels = append(m.Labels, attrPrefix+label)
	}
	return m
}

func (d *definition) metricType() string {
	switch d.into.(type) {
	case *metric.Float64Histogram:
		return "histogram"
	case *metric.Int64Counter:
		return "counter"
	case *metric.Int64ObservableUpDownCounter:
		return "updowncounter"
	default:
		return "gauge"
	}
}

// prometheusName returns the name that OpenTelemetry's exporter gives by default.
func prometheusName(m *Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == seconds {
		name += "_seconds"
	}
	if m.Type == "counter" {
		name += "_total"
	}
	return name
}

// instruments holds the instruments of a Telemetry. The method table defines them.
type instruments struct {
	wait      metric.Float64Histogram
	acquire   metric.Float64Histogram
	hold      metric.Float64Histogram
	remaining metric.Float64Histogram

	renewals        metric.Int64Counter
	lost            metric.Int64Counter
	heldTooLong     metric.Int64Counter
	leaks           metric.Int64Counter
	releaseFailures metric.Int64Counter
	failures        metric.Int64Counter
	unlocked        metric.Int64Counter
	handoffs        metric.Int64Counter
	dryRuns         metric.Int64Counter
	reloads         metric.Int64Counter

	waiters     metric.Int64ObservableUpDownCounter
	held        metric.Int64ObservableUpDownCounter
	rules       metric.Int64ObservableUpDownCounter
	oldestWait  metric.Float64ObservableGauge
	longestHold metric.Float64ObservableGauge
	waitTime    metric.Float64ObservableGauge
	leaseTime   metric.Float64ObservableGauge
	clientInfo  metric.Int64ObservableGauge
	reload      metric.Float64ObservableGauge
}

func newInstruments(m metric.Meter) (*instruments, error) {
	i := &instruments{}
	var errs []error
	for _, d := range i.table() {
		errs = append(errs, d.make(m))
	}
	return i, errors.Join(errs...)
}

// observables returns the instruments that are read at each collection.
func (i *instruments) observables() []metric.Observable {
	return []metric.Observable{
		i.waiters, i.held, i.rules, i.oldestWait, i.longestHold, i.waitTime, i.leaseTime, i.clientInfo, i.reload,
	}
}

// wait.duration and hold.duration have an exemplar for each acquisition, which leads to its trace. The other
// histograms have exemplars only for values that an operator would investigate, because recording an
// exemplar costs as much as recording the value.
const (
	slowTrip = time.Millisecond // a round trip of this time or more is slow
	scarce   = 0.5              // a remaining part of the lease of this size or less is small
)

// exemplarIf returns the context to record with. A context without a span yields no exemplar.
func exemplarIf(ctx context.Context, wanted bool) context.Context {
	if wanted {
		return ctx
	}
	return context.Background() //nolint:forbidigo // without a span
}

// make creates the instrument.
func (d *definition) make(m metric.Meter) (err error) {
	unit, text := metric.WithUnit(d.unit), metric.WithDescription(d.meaning)
	switch into := d.into.(type) {
	case *metric.Float64Histogram:
		*into, err = m.Float64Histogram(d.name, unit, text, metric.WithExplicitBucketBoundaries(d.buckets...))
	case *metric.Int64Counter:
		*into, err = m.Int64Counter(d.name, unit, text)
	case *metric.Int64ObservableUpDownCounter:
		*into, err = m.Int64ObservableUpDownCounter(d.name, unit, text)
	case *metric.Float64ObservableGauge:
		*into, err = m.Float64ObservableGauge(d.name, unit, text)
	case *metric.Int64ObservableGauge:
		*into, err = m.Int64ObservableGauge(d.name, unit, text)
	default:
		err = fmt.Errorf("%s: a %T is not an instrument", d.name, into)
	}
	return err
}
