package reaper

import "fmt"

// Kept describes what a reaper remembers.
func (r *Reaper) Kept() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d orphans of %d fields in %d keys, %d due, %d parked, %d asked about, running: %v",
		r.orphans, len(r.fields), len(r.keys), r.due.Len(), len(r.parked), r.asking, r.running)
}

// KeptNothing is Kept of a reaper that has nothing to do.
const KeptNothing = "0 orphans of 0 fields in 0 keys, 0 due, 0 parked, 0 asked about, running: false"

// Bounds, for the tests.
const (
	MaxOrphans = maxOrphans
	MaxAsking  = maxAsking
	AskEvery   = askEvery
	LongestAsk = longestAsk
	MaxPast    = maxPast
)
