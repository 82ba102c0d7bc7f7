package history_test

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/history"
)

// If a tick of stallTick comes later than lateTick, the process did not run in between.
const (
	stallTick = 5 * time.Millisecond
	lateTick  = 15 * time.Millisecond
)

// watchStalls records, until stop is closed, when this process did not run and when its wall clock was set. A
// wall clock that is set ends leases early.
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
			note(history.Event{Kind: history.Fault, Process: process, Begin: last, End: at, Note: "the wall clock was set by " + step.String()})
		}
		last, lastWall = at, wall
	}
}
