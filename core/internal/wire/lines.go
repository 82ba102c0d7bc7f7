package wire

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lines holds the connections to one node: usually one pipeline for all commands, because on a pipeline no
// command waits for another. Other pipelines exist only for a short time:
//
//	one        the first pipeline takes all commands
//	attempts   the first pipeline hangs, is old, or broke, and others are being connected. If an attempt takes
//	           too long, another one with more time begins
//	one again  the first pipeline recovered; the attempts are closed
//	changed    an attempt is open, so Redis answers on it. It takes all new commands and becomes the first
//	           pipeline; the previous one leaves
//	leaving    the commands of a leaving pipeline continue to wait, each until its limit. If the pipeline hangs,
//	           its callers are interrupted (see OnHang). It is closed when all commands are answered
//	dead       an open pipeline, the first or a leaving one, received nothing for the timeout. It is closed, and
//	           its commands have no answer
//
// advance changes the state at every look of the shared deadline. replacement changes it when a command finds
// that the first pipeline broke. The attempts also show whether the node is silent (see health), because each
// sends a PING.
type lines struct {
	life // its mutex guards the attempts and leaving

	origin *origin
	health *health // the health of the origin
	bound  int
	first  atomic.Pointer[pipeline]
	trip   atomic.Int64 // see flow

	attempts  []*pipeline // the newest last
	again     time.Time   // when there may be another attempt
	pause     time.Duration
	leaving   []*pipeline
	pinged    time.Time
	concluded *pipeline // the last first pipeline that broke and was reported to health

	asleep atomic.Bool // the shared deadline has nothing to watch
	wake   chan struct{}
}

// maxQueued limits the commands under way to a node. Further calls fail, so that the queue stays bounded
// while Redis does not answer.
const maxQueued = 50_000

// pipelineBound returns maxQueued, or the limit of the caller's client.
func pipelineBound(said *redis.AutoPipelineOptions) int {
	if said != nil && said.MaxQueuedCommands > 0 {
		return said.MaxQueuedCommands
	}
	return maxQueued
}

func newLines(o *origin, bound int) *lines {
	l := &lines{origin: o, health: o.health, bound: bound, wake: make(chan struct{}, 1)}
	l.begin()
	l.asleep.Store(true)
	l.health.rouse = l.rouse
	l.workers.Go(l.watch)
	return l
}

// newPipeline begins to connect one more pipeline.
func (l *lines) newPipeline() *pipeline {
	return l.origin.pipeline(l.bound, &l.trip, l.rouse)
}

// submit sends a command.
func (l *lines) submit(c *command) error {
	for try := 0; ; try++ {
		p := l.first.Load()
		if p == nil || l.shouldReplace(p, c.at) {
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

// shouldReplace reports whether new commands should take another pipeline.
func (l *lines) shouldReplace(p *pipeline, now time.Time) bool {
	return p.flow.ended.Load() || l.origin.old(p, now)
}

// replacement returns the pipeline for a command when the first one may be unusable. A new pipeline
// may take any time to connect.
func (l *lines) replacement(now time.Time) (*pipeline, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, redis.ErrClosed
	}
	p := l.first.Load()
	if p != nil && (!l.shouldReplace(p, now) || !p.retire()) {
		return p, nil
	}
	if p != nil && now.Sub(p.born) < mostPause {
		if why := p.reason(); FateOf(why) == Answered {
			return nil, why // Redis just refused a connection and would refuse another
		}
	}
	l.drop(p, errPipelineClosed)
	p = nil
	for i := len(l.attempts) - 1; i >= 0 && p == nil; i-- {
		if !l.attempts[i].flow.ended.Load() {
			p = l.attempts[i]
			l.attempts = slices.Delete(l.attempts, i, i+1)
		}
	}
	if p == nil {
		p = l.newPipeline()
	}
	l.first.Store(p)
	return p, nil
}

// drop breaks a pipeline in the background, because its goroutines may take a while. The mutex is held.
func (l *lines) drop(p *pipeline, why error) {
	if p != nil {
		l.workers.Go(func() { p.drop(why) })
	}
}

// advance checks the pipelines and the health of the node once. It reports whether the watch has to go
// on.
func (l *lines) advance() (busy bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	first, ended, hangs := l.first.Load(), true, false
	if first != nil {
		var quiet time.Duration
		busy, quiet = first.look(now)
		ended, hangs = first.flow.ended.Load(), quiet >= first.flow.hangsAfter()
		if quiet >= l.origin.timeout && first.isOpen() {
			l.drop(first, errNoAnswer) // a reply may never come, and a write may never end
		}
		if ended && l.concluded != first {
			l.concluded = first
			l.reportBroken(first)
		} else if first.progress.overdue(now) {
			l.health.conclude(l.origin.mute())
		}
	}
	silent, doubtful := l.health.err() != nil, l.health.doubtful()
	switch {
	case ended && (silent || doubtful), hangs, busy && l.origin.old(first, now):
		l.attempt(now)
	case len(l.attempts) > 0 && !ended && !hangs:
		l.giveUp()
	case doubtful && !busy && !ended && first.isOpen() && now.Sub(l.pinged) >= pingPause:
		l.pinged = now
		_ = first.submit(internal(func() {}, "ping")) //nolint:errcheck // if the pipeline broke, the next advance sees it
	}
	l.take(now)
	if silent && !l.health.unanswered(0) {
		l.health.returns()
	}
	return l.closeLeaving(now) || busy || silent || doubtful || len(l.attempts) > 0
}

// recordTimeout records an operation that failed for the whole timeout. The failure proves nothing while a
// connection waits for a function of the caller.
func (l *lines) recordTimeout(err error) {
	l.mu.Lock()
	all := append([]*pipeline{l.first.Load()}, l.attempts...)
	l.mu.Unlock()
	if slices.ContainsFunc(all, func(p *pipeline) bool { return p != nil && p.prepares() }) {
		l.rouse()
		return
	}
	l.health.recordTimeout(err)
}

// attempt starts to connect another pipeline if the last attempt is old enough. The mutex is held.
func (l *lines) attempt(now time.Time) {
	n := len(l.attempts)
	switch {
	case n == 0 && now.Before(l.again), n == mostAttempts:
	case n == 0, now.Sub(l.attempts[n-1].born) >= l.attemptTime(n):
		l.attempts = append(l.attempts, l.newPipeline())
	}
}

// attemptTime returns how long the n-th attempt may take before the next one begins. If packets were
// lost, a new attempt helps. If connecting takes long, more time helps. So the second attempt gets twice
// the time.
func (l *lines) attemptTime(n int) time.Duration {
	return max(l.origin.timeout/4<<min(n-1, 2), 10*time.Duration(l.trip.Load()))
}

// giveUp drops the attempts. The mutex is held.
func (l *lines) giveUp() {
	for _, p := range l.attempts {
		l.drop(p, errPipelineClosed)
	}
	l.attempts, l.pause = nil, 0
}

// take replaces the first pipeline with an attempt that is open. It reports attempts that failed or
// take too long to health. The mutex is held.
func (l *lines) take(now time.Time) {
	for i, p := range l.attempts {
		switch {
		case p.isOpen():
			if first := l.first.Load(); first != nil {
				l.leave(first)
			}
			l.first.Store(p)
			l.attempts = slices.Delete(l.attempts, i, i+1)
			l.giveUp()
			return
		case p.flow.ended.Load():
			l.reportBroken(p)
		case p.progress.overdue(now) && l.health.unanswered(l.origin.timeout):
			p.fail(l.origin.mute())
			l.drop(p, l.origin.mute())
			l.reportBroken(p)
		}
	}
	before := len(l.attempts)
	l.attempts = slices.DeleteFunc(l.attempts, func(p *pipeline) bool { return p.flow.ended.Load() })
	if len(l.attempts) < before {
		l.pause = min(max(2*l.pause, leastPause), mostPause)
		l.again = now.Add(l.pause)
	}
}

// reportBroken reports the reason of a broken pipeline to health. The mutex is held.
func (l *lines) reportBroken(p *pipeline) {
	why := p.reason()
	if FateOf(why) == Answered {
		l.health.recordAnswer()
		return
	}
	l.health.trouble.note(cause(why))
	l.health.conclude(cause(why))
}

// leave lets a pipeline complete its commands. It gets no new ones. The mutex is held.
func (l *lines) leave(p *pipeline) {
	l.leaving = append(l.leaving, p)
	if len(l.leaving) > mostLeaving {
		l.drop(l.leaving[0], errHangs)
		l.leaving = l.leaving[1:]
	}
}

// closeLeaving closes the leaving pipelines that have no commands left or received nothing for the
// timeout. It reports whether any remain. The mutex is held.
func (l *lines) closeLeaving(now time.Time) (busy bool) {
	l.leaving = slices.DeleteFunc(l.leaving, func(p *pipeline) bool {
		_, quiet := p.look(now)
		if quiet < l.origin.timeout && !p.retire() {
			p.interruptHanging(quiet, l.origin.timeout)
			return false
		}
		l.drop(p, errNoAnswer)
		return true
	})
	return len(l.leaving) > 0
}

// close breaks the pipelines and waits for their goroutines.
func (l *lines) close() {
	if l.shut() {
		l.mu.Lock()
		for _, p := range append(l.leaving, l.first.Load()) {
			l.drop(p, errPipelineClosed)
		}
		l.giveUp()
		l.leaving = nil
		l.mu.Unlock()
	}
	l.workers.Wait()
	l.health.close()
}

// rouse wakes the watch.
func (l *lines) rouse() {
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		wake(l.wake)
	}
}

// watch runs the shared deadline: while the node has commands, it calls advance every moment, which
// is cheaper than a timer for each command.
func (l *lines) watch() {
	timer := time.NewTimer(moment)
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
		due := time.Now().Add(moment)
		timer.Reset(moment)
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		if late := time.Since(due); late > sleep {
			l.health.skipSleep(late)
		}
		if idle++; l.advance() {
			idle = 0
		}
	}
}

// ask sends a command that no hook sees and waits for its reply. It sends the command again if the
// connection hangs.
func (l *lines) ask(ctx context.Context, limit time.Time, args ...any) (c *command, err error) {
	for try := 0; try == 0 || hangs(err) && try < mostAttempts; try++ {
		c = internal(nil, args...)
		c.health, c.at = l.health, time.Now()
		l.health.recordSending(c.at)
		c.prepare(within(ctx, limit))
		if err = l.submit(c); err == nil {
			err = c.await(ctx, limit)
		}
	}
	return c, err
}
