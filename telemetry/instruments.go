package telemetry

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// instruments are all the instruments there are; the method table describes them.
type instruments struct {
	wait      metric.Float64Histogram
	acquire   metric.Float64Histogram
	hold      metric.Float64Histogram
	remaining metric.Float64Histogram

	renewals        metric.Int64Counter
	lost            metric.Int64Counter
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

// observables are those that are read at each collection.
func (i *instruments) observables() []metric.Observable {
	return []metric.Observable{
		i.waiters, i.held, i.rules, i.oldestWait, i.longestHold, i.waitTime, i.leaseTime, i.clientInfo, i.reload,
	}
}

// make makes the instrument.
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
		err = fmt.Errorf("%s: a %T is no instrument", d.name, into)
	}
	return err
}
