package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are all the instruments there are.
type instruments struct {
	wait    metric.Float64Histogram
	acquire metric.Float64Histogram
	hold    metric.Float64Histogram

	renewals        metric.Int64Counter
	lost            metric.Int64Counter
	releaseFailures metric.Int64Counter
	failures        metric.Int64Counter
	unlocked        metric.Int64Counter
	handoffs        metric.Int64Counter
	dryRuns         metric.Int64Counter
	reloads         metric.Int64Counter

	waiters    metric.Int64ObservableUpDownCounter
	held       metric.Int64ObservableUpDownCounter
	rules      metric.Int64ObservableUpDownCounter
	oldestWait metric.Float64ObservableGauge
	clientInfo metric.Int64ObservableGauge
	reload     metric.Float64ObservableGauge
}

func newInstruments(m metric.Meter) (*instruments, error) {
	b := &builder{meter: m}
	i := &instruments{
		wait:    b.histogram("distributed_lock.wait.duration", "Time spent in acquiring a lock, whatever the outcome."),
		acquire: b.histogram("distributed_lock.acquire.duration", "Round trip of an uncontended acquisition."),
		hold:    b.histogram("distributed_lock.hold.duration", "Time from the acquisition of a lock to its release."),

		renewals:        b.counter("distributed_lock.renewals", "{renewal}", "Renewals of leases by the watchdog."),
		lost:            b.counter("distributed_lock.lost", "{hold}", "Holds that ended under their holder."),
		releaseFailures: b.counter("distributed_lock.release.failures", "{failure}", "Releases that Redis did not confirm."),
		failures:        b.counter("distributed_lock.failures", "{failure}", "Locks that were not had or not kept, by cause and answering strategy."),
		unlocked:        b.counter("distributed_lock.unlocked", "{call}", "Handlers that ran without their lock."),
		handoffs:        b.counter("distributed_lock.handoffs", "{handoff}", "Locks passed on to a waiter of the same process."),
		dryRuns:         b.counter("distributed_lock.dry_runs", "{call}", "Calls of rules in dry run, by what would have happened."),
		reloads:         b.counter("distributed_lock.reloads", "{reload}", "Attempts to take a rule file into force."),

		waiters: b.upDown("distributed_lock.waiters", "{waiter}", "Callers that wait for a lock."),
		held:    b.upDown("distributed_lock.held", "{hold}", "Locks that are held."),
		rules:   b.upDown("distributed_lock.rules", "{rule}", "Compiled rules by state."),
	}
	i.oldestWait = b.seconds("distributed_lock.oldest_wait", "How long the first of the waiting callers has been waiting.")
	i.reload = b.seconds("distributed_lock.reload", "When the rule file in force was loaded, in Unix time.")
	i.clientInfo = b.clientInfo()
	return i, errors.Join(b.errs...)
}

// builder collects the errors of all instruments.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) histogram(name, text string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
		metric.WithExplicitBucketBoundaries(Buckets()...))
	b.errs = append(b.errs, err)
	return h
}

func (b *builder) counter(name, unit, text string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) upDown(name, unit, text string) metric.Int64ObservableUpDownCounter {
	c, err := b.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) seconds(name, text string) metric.Float64ObservableGauge {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text))
	b.errs = append(b.errs, err)
	return g
}

func (b *builder) clientInfo() metric.Int64ObservableGauge {
	g, err := b.meter.Int64ObservableGauge("distributed_lock.client.info", metric.WithUnit("{client}"),
		metric.WithDescription("1 for each lock client; its id begins the holder fields in Redis."))
	b.errs = append(b.errs, err)
	return g
}
