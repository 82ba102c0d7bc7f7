package main

import (
	"context"
	"sync"
)

// lastWords is the tick that the instance which gets it does not survive.
const lastWords = 6

// together lets all instances tick at once. It gives the one whose job failed and
// why, or -1 and nil.
func together(ctx context.Context, fleet []*instance, tick int) (failed int, err error) {
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

// journal counts how often the job ran to its end, for each tick.
type journal struct {
	mu   sync.Mutex
	runs map[int]int
}

func (j *journal) ran(tick int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[tick]++
}

func (j *journal) count(tick int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.runs[tick]
}
