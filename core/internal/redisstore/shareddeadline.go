package redisstore

import (
	"sync"
	"sync/atomic"
	"time"
)

// sharedDeadline looks after the calls of a node while there are any: cheaper than a timer
// for each of them.
type sharedDeadline struct {
	asleep atomic.Bool
	wake   chan struct{}
	end    chan struct{}
	worker sync.WaitGroup
}

func (d *sharedDeadline) start(s *pipelines) {
	d.wake, d.end = make(chan struct{}, 1), make(chan struct{})
	d.asleep.Store(true)
	d.worker.Go(func() { d.run(s) })
}

func (d *sharedDeadline) stop() {
	close(d.end)
	d.worker.Wait()
}

// watch has the calls looked after from now on.
func (d *sharedDeadline) watch() {
	if d.asleep.Load() && d.asleep.CompareAndSwap(true, false) {
		wake(d.wake)
	}
}

func (d *sharedDeadline) run(s *pipelines) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for idle := idleLooks; ; {
		if idle >= idleLooks {
			d.asleep.Store(true)
			if !s.advance() {
				select {
				case <-d.wake:
				case <-d.end:
					return
				}
			}
			d.asleep.Store(false)
			idle = 0
		}
		due := time.Now().Add(patience)
		timer.Reset(patience)
		select {
		case <-timer.C:
		case <-d.end:
			return
		}
		if late := time.Since(due); late > sleep {
			s.slept(late)
		}
		if idle++; s.advance() {
			idle = 0
		}
	}
}
