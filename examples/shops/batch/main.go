// Batch has several workers walk the same list of batches, with package core only.
//
//	go -C examples run ./shops/batch
//
// A worker tries each batch without waiting: what is taken is somebody else's. The
// ledger of what is done is read inside the lock. A batch that fails is free again,
// and whoever comes by next retries it. A worker that stalls for longer than its
// lease has lost the lock; it notices by its context, and stops.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
)

const (
	workers = 4
	batches = 12
	failing = "batch-03" // fails the first time
	stalled = "batch-07" // hangs the first time
	lease   = 500 * time.Millisecond
)

func main() { proof.Main("batch", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	l := newLedger()
	var clients []*core.Client
	for range workers {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		clients = append(clients, locks)
	}

	p.Titlef("%d workers walk the same %d batches", workers, batches)
	errs := proof.Tally(workers, func(i int) error { return work(ctx, clients[i], l) })
	p.Checkf(errs[nil] == workers, "%d of %d workers came to the end", errs[nil], workers)
	p.Checkf(l.doneOnce() == batches, "%d of %d batches were done exactly once", l.doneOnce(), batches)
	p.Checkf(l.staleWrites() == 0, "%d rows were written by a worker when another had the batch", l.staleWrites())

	p.Checkf(errors.Is(l.failure(failing), errRow) && l.runs(failing) == 2,
		"%s failed (%v) and was retried: %d runs", failing, l.failure(failing), l.runs(failing))
	p.Checkf(errors.Is(l.failure(stalled), core.ErrLost) && l.runs(stalled) == 2,
		"%s hung until its lock was lost, wrote nothing more, and was retried: %d runs", stalled, l.runs(stalled))
	return nil
}

// work goes round until every batch is done.
func work(ctx context.Context, locks *core.Client, l *ledger) error {
	for ; !l.complete(); time.Sleep(10 * time.Millisecond) {
		for _, batch := range l.batches {
			err := locks.Lock("batch:"+batch).Do(ctx, func(ctx context.Context) error {
				if l.done(batch) {
					return nil
				}
				return process(ctx, l, batch)
			}, core.WaitTime(0), core.LeaseTime(lease))
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, core.ErrNotAcquired): // somebody is at it
			case err != nil:
				l.fail(batch, err) // the next round, or another worker, retries
			}
		}
	}
	return nil
}

var errRow = errors.New("row 2 is not valid")

// process is the work. ctx ends when the lock is lost: it is asked before each step
// that cannot be undone, and passed on to whatever takes a context.
func process(ctx context.Context, l *ledger, batch string) error {
	run := l.start(batch)
	for row := range 5 {
		switch {
		case run == 1 && row == 2 && batch == failing:
			return errRow
		case run == 1 && row == 2 && batch == stalled:
			<-ctx.Done() // a query that does not come back
		}
		time.Sleep(2 * time.Millisecond) // computes the row
		if ctx.Err() != nil {
			return fmt.Errorf("row %d not written: %w", row, context.Cause(ctx))
		}
		l.write(batch, run)
	}
	l.finish(batch)
	return nil
}
