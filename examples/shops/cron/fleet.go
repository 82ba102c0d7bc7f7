package main

import (
	"context"
	"sync"
)

// deathTick is the tick at which the instance that runs the job dies.
const deathTick = 6

// tickAll makes all instances tick at once. If a job fails, it returns the instance and the
// error, and otherwise -1 and nil.
func tickAll(ctx context.Context, fleet []*instance, tick int) (failed int, err error) {
	errs := make([]error, len(fleet))
	var all sync.WaitGroup
	for i, in := range fleet {
		all.Go(func() { _, errs[i] = in.report(ctx, tick) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return i, err
		}
	}
	return -1, nil
}

// journal counts the completed runs of the job for each tick.
type journal struct {
	mu   sync.Mutex
	runs map[int]int
}

func (j *journal) record(tick int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[tick]++
}

func (j *journal) count(tick int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.runs[tick]
}
