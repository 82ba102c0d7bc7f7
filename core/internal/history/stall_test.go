package history_test

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/history"
)

// A ticker that comes later than this was kept from running and so was the rest of the process.
const (
	stallTick = 5 * time.Millisecond
	lateTick  = 15 * time.Millisecond
)

// watchStalls records when this process stood still, and when its wall clock stepped, which ends leases
// early, until stop is closed.
func watchStalls(process int, now func() time.Duration, note func(history.Event), stop <-chan struct{}) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	last, lastWall := now(), time.Now().UnixNano()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		at, wall := now(), time.Now().UnixNano()
		if at-last > lateTick {
			note(history.Event{Kind: history.Stall, Process: process, Begin: last, End: at})
		}
		if step := time.Duration(wall-lastWall) - (at - last); step.Abs() > lateTick {
			note(history.Event{Kind: history.Fault, Process: process, Begin: last, End: at, Note: "the wall clock stepped by " + step.String()})
		}
		last, lastWall = at, wall
	}
}
