// Batch runs several workers that process the same list of batches, with package core only.
//
//	go -C examples run ./shops/batch
//
// A worker tries to lock each batch without waiting: if the lock is taken, another worker has the
// batch. The worker reads the ledger of finished batches inside the lock. A failed batch is free
// again, and the next worker retries it. A worker that stalls for longer than its lease loses the
// lock. Its context is canceled, and it stops.
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

	p.Titlef("%d workers process the same %d batches", workers, batches)
	errs := proof.Tally(workers, func(i int) error { return work(ctx, clients[i], l) })
	p.Checkf(errs[nil] == workers, "%d of %d workers finished", errs[nil], workers)
	p.Checkf(l.doneOnce() == batches, "%d of %d batches were done exactly once", l.doneOnce(), batches)
	p.Checkf(l.staleWrites() == 0, "%d rows were written by a worker while another worker had the batch", l.staleWrites())

	p.Checkf(errors.Is(l.failure(failing), errRow) && l.runs(failing) == 2,
		"%s failed (%v) and was retried: %d runs", failing, l.failure(failing), l.runs(failing))
	p.Checkf(errors.Is(l.failure(stalled), core.ErrLost) && l.runs(stalled) == 2,
		"%s hung until its lock was lost, wrote nothing more, and was retried: %d runs", stalled, l.runs(stalled))
	return nil
}

// work repeats until every batch is done.
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
			case errors.Is(err, core.ErrNotAcquired): // another worker has it
			case err != nil:
				l.fail(batch, err) // this worker retries in the next round, or another worker does
			}
		}
	}
	return nil
}

var errRow = errors.New("row 2 is not valid")

// process does the work. ctx is canceled when the lock is lost. process checks ctx before each
// step that cannot be undone and passes it to each call that takes a context.
func process(ctx context.Context, l *ledger, batch string) error {
	run := l.start(batch)
	for row := range 5 {
		switch {
		case run == 1 && row == 2 && batch == failing:
			return errRow
		case run == 1 && row == 2 && batch == stalled:
			<-ctx.Done() // a query that does not return
		}
		time.Sleep(2 * time.Millisecond) // the time to compute the row
		if ctx.Err() != nil {
			return fmt.Errorf("row %d not written: %w", row, context.Cause(ctx))
		}
		l.write(batch, run)
	}
	l.finish(batch)
	return nil
}
