package main

import (
	"fmt"
	"slices"
	"sync"
)

// ledger stands for a table of batches and counts the events of each batch.
type ledger struct {
	batches []string // the written rows in order

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	runs, finished int
	stale          int   // the number of writes of a run after the next run started
	failure        error // the error of the last failed run
}

func newLedger() *ledger {
	l := &ledger{entries: make(map[string]*entry)}
	for i := range batches {
		name := fmt.Sprintf("batch-%02d", i)
		l.batches = append(l.batches, name)
		l.entries[name] = &entry{}
	}
	return l
}

// with calls do with an entry under the mutex.
func (l *ledger) with(batch string, do func(e *entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.entries[batch])
}

// start starts a run of the batch and returns its number, counted from 1.
func (l *ledger) start(batch string) (run int) {
	l.with(batch, func(e *entry) {
		e.runs++
		run = e.runs
	})
	return run
}

// write writes a row of the batch.
func (l *ledger) write(batch string, run int) {
	l.with(batch, func(e *entry) {
		if run != e.runs {
			e.stale++
		}
	})
}

func (l *ledger) finish(batch string)          { l.with(batch, func(e *entry) { e.finished++ }) }
func (l *ledger) fail(batch string, err error) { l.with(batch, func(e *entry) { e.failure = err }) }

func (l *ledger) done(batch string) (done bool) {
	l.with(batch, func(e *entry) { done = e.finished > 0 })
	return done
}

func (l *ledger) runs(batch string) (n int) {
	l.with(batch, func(e *entry) { n = e.runs })
	return n
}

func (l *ledger) failure(batch string) (err error) {
	l.with(batch, func(e *entry) { err = e.failure })
	return err
}

func (l *ledger) complete() bool {
	return !slices.ContainsFunc(l.batches, func(batch string) bool { return !l.done(batch) })
}

// doneOnce counts the batches that were finished exactly once.
func (l *ledger) doneOnce() (n int) {
	for _, batch := range l.batches {
		l.with(batch, func(e *entry) {
			if e.finished == 1 {
				n++
			}
		})
	}
	return n
}

// staleWrites counts the rows that a worker wrote while another worker had the batch.
func (l *ledger) staleWrites() (n int) {
	for _, batch := range l.batches {
		l.with(batch, func(e *entry) { n += e.stale })
	}
	return n
}
