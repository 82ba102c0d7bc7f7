package wire

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lines are the way to one node: one pipeline, on which all commands travel, because none
// waits there for another. Others exist for a moment only:
//
//	one         the first takes all commands
//	two         the first hangs, or is old: a second is being connected beside it. One that
//	            takes too long is given up for another one, which has more time
//	one again   the first has gone on; the second is closed
//	changed     the second is open: it takes all new commands, and the first leaves
//	leaving     its commands go on waiting there, each until its limit; those that wait for
//	            long are notified, and sent again. It is closed when it has answered them
//	silent      the first, or one that leaves, is open and has said nothing for the timeout:
//	            it is closed, and what waits there has no answer
//	ended       the first is closed: with the next command the second becomes the first, or a new
//	            one does, which has all the time it needs to connect
//
// advance changes that, at every look of the shared deadline; replacement does when one has
// ended. While the first hangs and no second is connected, it is not known whether Redis would
// answer: commands wait, and health finds out.
type lines struct {
	life // its mutex guards second and leaving

	node  *node
	bound int
	first atomic.Pointer[pipeline]
	trip  atomic.Int64 // see flow

	second  second
	leaving []*pipeline

	asleep atomic.Bool // the shared deadline: there are no commands to look after
	wake   chan struct{}
}

// second is the pipeline that is being connected beside the first.
type second struct {
	*pipeline           // nil: there is none
	given     int       // up for another one, in a row, because they took too long
	again     time.Time // when there may be another one
}

// maxQueued bounds the commands that are under way to a node. Beyond it calls fail instead
// of growing the queue of a Redis that does not answer.
const maxQueued = 50_000

// pipelineBound is maxQueued, or what the caller's client says.
func pipelineBound(said *redis.AutoPipelineOptions) int {
	if said != nil && said.MaxQueuedCommands > 0 {
		return said.MaxQueuedCommands
	}
	return maxQueued
}

func newLines(n *node, bound int) *lines {
	l := &lines{node: n, bound: bound, wake: make(chan struct{}, 1)}
	l.begin()
	l.asleep.Store(true)
	l.workers.Go(l.watch)
	return l
}

// newPipeline begins to connect one more.
func (l *lines) newPipeline() *pipeline {
	return l.node.pipeline(l.bound, &l.trip, l.rouse)
}

// submit sends a command.
func (l *lines) submit(c *command) error {
	for try := 0; ; try++ {
		p := l.first.Load()
		if p == nil || l.worn(p, c.at) {
			var err error
			if p, err = l.replacement(c.at); err != nil {
				return err
			}
		}
		err := p.submit(c)
		if err == nil || !p.flow.ended.Load() || try > 0 {
			return err
		}
	}
}

// worn reports whether new commands should take another pipeline.
func (l *lines) worn(p *pipeline, now time.Time) bool {
	return p.flow.ended.Load() || l.node.old(p, now)
}

// replacement is the pipeline for a command when the first one may be of no use.
func (l *lines) replacement(now time.Time) (*pipeline, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, redis.ErrClosed
	}
	p := l.first.Load()
	if p != nil && (!l.worn(p, now) || !p.retire()) {
		return p, nil
	}
	l.drop(p, errPipelineClosed)
	if p = l.second.pipeline; p == nil || p.flow.ended.Load() {
		l.drop(p, errPipelineClosed)
		p = l.newPipeline()
	}
	l.second.pipeline, l.second.given = nil, 0
	l.first.Store(p)
	return p, nil
}

// drop ends a pipeline, in the background: its goroutines may take a while. The mutex is
// held.
func (l *lines) drop(p *pipeline, why error) {
	if p != nil {
		l.workers.Go(func() { p.drop(why) })
	}
}

// advance looks at the pipelines, and reports whether there are commands.
func (l *lines) advance() (busy bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.first.Load()
	if first == nil || l.closed {
		return false
	}
	busy, quiet := first.look(now)
	if quiet >= l.node.timeout && first.opened() {
		l.drop(first, errNoAnswer) // nothing may ever come, nor what is being written be read
	}
	l.replace(first, now, busy, quiet >= first.flow.hanging())
	return l.part(now) || busy
}

// replace has a second pipeline take the place of the first when that hangs, or is old. The
// mutex is held.
func (l *lines) replace(first *pipeline, now time.Time, busy, hangs bool) {
	switch {
	case first.flow.ended.Load(): // replacement does
	case !hangs && !l.node.old(first, now):
		l.drop(l.second.pipeline, errPipelineClosed)
		l.second.pipeline, l.second.given = nil, 0
	case l.second.pipeline == nil:
		if busy && !now.Before(l.second.again) {
			l.second.pipeline = l.newPipeline()
		}
	case l.second.flow.ended.Load():
		l.giveUp(now)
	case l.second.opened():
		l.first.Store(l.second.pipeline)
		l.second.pipeline, l.second.given, l.leaving = nil, 0, append(l.leaving, first)
		if len(l.leaving) > mostLeaving {
			l.drop(l.leaving[0], errHangs)
			l.leaving = l.leaving[1:]
		}
	case now.Sub(l.second.born) >= l.secondTime():
		l.giveUp(now)
		l.second.given++
	}
}

// giveUp ends a second pipeline that is not connected. The mutex is held.
func (l *lines) giveUp(now time.Time) {
	l.drop(l.second.pipeline, errPipelineClosed)
	l.second.pipeline, l.second.again = nil, now.Add(secondPause)
}

// secondTime is how long a second pipeline is being connected before another one is: what
// it has sent may be lost, or it needs longer than that, so the next has twice the time. The
// timeout is enough for all whose commands can be answered within it.
func (l *lines) secondTime() time.Duration {
	return max(l.node.timeout/4<<min(l.second.given, 2), 10*time.Duration(l.trip.Load()))
}

// part closes pipelines that leave, and reports whether there are others. The mutex is held.
func (l *lines) part(now time.Time) (busy bool) {
	l.leaving = slices.DeleteFunc(l.leaving, func(p *pipeline) bool {
		_, quiet := p.look(now)
		if quiet < l.node.timeout && !p.retire() {
			p.sendElsewhere(quiet, l.node.timeout)
			return false
		}
		l.drop(p, errNoAnswer)
		return true
	})
	return len(l.leaving) > 0
}

// close ends the pipelines, and waits for their goroutines.
func (l *lines) close() {
	if l.shut() {
		l.mu.Lock()
		for _, p := range append(l.leaving, l.first.Load(), l.second.pipeline) {
			l.drop(p, errPipelineClosed)
		}
		l.second.pipeline, l.leaving = nil, nil
		l.mu.Unlock()
	}
	l.workers.Wait()
}

// rouse has the commands looked after from now on.
func (l *lines) rouse() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		wake(l.wake)
	}
}

// watch is the shared deadline: it looks after the commands of the node while there are any, which is cheaper
// than a timer for each of them.
func (l *lines) watch() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for idle := idleLooks; ; {
		if idle >= idleLooks {
			l.asleep.Store(true)
			if !l.advance() {
				select {
				case <-l.wake:
				case <-l.ctx.Done():
					return
				}
			}
			l.asleep.Store(false)
			idle = 0
		}
		due := time.Now().Add(patience)
		timer.Reset(patience)
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		if late := time.Since(due); late > sleep {
			l.node.health.slept(late)
		}
		if idle++; l.advance() {
			idle = 0
		}
	}
}
