package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipelines are the way to one node: one pipeline, on which all calls travel, because none
// waits there for another. Others exist for a moment only:
//
//	one         the first takes all calls
//	two         the first hangs, or is old: a second is being connected beside it. One that
//	            takes too long is given up for another one, which has more time
//	one again   the first has gone on; the second is closed
//	changed     the second is open: it takes all new calls, and the first leaves
//	leaving     its calls go on waiting there, each until its limit; those that wait for
//	            long are notified, and sent again. It is closed when it has answered them
//	silent      the first, or one that leaves, is open and has said nothing for the timeout:
//	            it is closed, and what waits there has no answer
//	ended       the first is closed: with the next call the second becomes the first, or a new
//	            one does, and nobody cuts it short while it connects
//
// advance changes that, at every look of the shared deadline; replacement does when one has
// ended. While the first hangs and no second is connected, nobody knows whether Redis would
// answer: calls wait, and health finds out.
type pipelines struct {
	client  *redis.Client
	dialing *dialing
	bound   int
	timeout time.Duration
	maxAge  time.Duration // of a connection; 0: none
	owner   string        // the connections are named after it; empty: they are not
	unnamed atomic.Bool   // only connections without a name work
	first   atomic.Pointer[pipeline]
	trip    atomic.Int64          // see flow
	slept   func(d time.Duration) // notified of time in which this process did not run

	mu      sync.Mutex
	second  second
	leaving []*pipeline
	closed  bool
	worker  sync.WaitGroup

	shared sharedDeadline
}

// second is the pipeline that is being connected beside the first.
type second struct {
	*pipeline           // nil: there is none
	given     int       // up for another one, in a row, because they took too long
	again     time.Time // when there may be another one
}

// sentinelAge is how old a connection to the master of a Sentinel gets: go-redis closes
// those of its pool when there is a new master, of ours it does not know.
const sentinelAge = 5 * time.Second

// maxAge is how old the connections of a client get.
func maxAge(o *redis.Options) time.Duration {
	age := max(o.ConnMaxLifetime, 0)
	if o.Addr == "FailoverClient" && (age == 0 || age > sentinelAge) {
		return sentinelAge
	}
	return age
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

func newPipelines(client *redis.Client, d *dialing, said *redis.AutoPipelineOptions, timeout time.Duration, slept func(time.Duration)) *pipelines {
	s := &pipelines{client: client, dialing: d, bound: pipelineBound(said), timeout: timeout, maxAge: maxAge(client.Options()), slept: slept}
	s.shared.start(s)
	return s
}

// newPipeline begins to connect one more.
func (s *pipelines) newPipeline() *pipeline {
	p := &pipeline{bound: s.bound, watch: s.shared.watch}
	p.flow.trip = &s.trip
	p.dial = func(ctx context.Context) (net.Conn, error) { return s.dialing.do(ctx, s.connect) }
	p.start()
	return p
}

// connect makes a connection, and one without a name if it cannot be named. If that one works, no later connection
// is named.
func (s *pipelines) connect(ctx context.Context) (net.Conn, error) {
	if !s.unnamed.Load() {
		conn, err := connect(ctx, s.client, s.timeout, s.owner)
		if !errors.Is(err, errNaming) {
			return conn, err
		}
	}
	conn, err := connect(ctx, s.client, s.timeout, "")
	if err == nil {
		s.unnamed.Store(true)
	}
	return conn, err
}

// submit sends a command.
func (s *pipelines) submit(c *command) error {
	for try := 0; ; try++ {
		p := s.first.Load()
		if p == nil || s.worn(p, c.at) {
			var err error
			if p, err = s.replacement(c.at); err != nil {
				return err
			}
		}
		err := p.submit(c)
		if err == nil || !p.flow.ended.Load() || try > 0 {
			return err
		}
	}
}

// old reports whether a connection has had its time.
func (s *pipelines) old(p *pipeline, now time.Time) bool {
	return p.flow.old.Load() || s.maxAge > 0 && now.Sub(p.born) > s.maxAge
}

// worn reports whether new calls should take another one.
func (s *pipelines) worn(p *pipeline, now time.Time) bool {
	return p.flow.ended.Load() || s.old(p, now)
}

// replacement is the pipeline for a call when the first one may be of no use.
func (s *pipelines) replacement(now time.Time) (*pipeline, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, redis.ErrClosed
	}
	p := s.first.Load()
	if p != nil && (!s.worn(p, now) || !p.retire()) {
		return p, nil
	}
	s.drop(p, errPipelineClosed)
	if p = s.second.pipeline; p == nil || p.flow.ended.Load() {
		s.drop(p, errPipelineClosed)
		p = s.newPipeline()
	}
	s.second.pipeline, s.second.given = nil, 0
	s.first.Store(p)
	return p, nil
}

// drop ends a pipeline, in the background: its goroutines may take a while. The mutex is
// held.
func (s *pipelines) drop(p *pipeline, why error) {
	if p != nil {
		s.worker.Go(func() { p.close(why) })
	}
}

// advance looks at the pipelines, and reports whether there are calls.
func (s *pipelines) advance() (busy bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.first.Load()
	if first == nil {
		return false
	}
	busy, quiet := first.look(now)
	if quiet >= s.timeout && first.opened() {
		s.drop(first, errNoAnswer) // nothing may ever come, nor what is being written be read
	}
	s.replace(first, now, busy, quiet >= first.flow.hanging())
	return s.part(now) || busy
}

// replace has a second pipeline take the place of the first when that hangs, or is old. The
// mutex is held.
func (s *pipelines) replace(first *pipeline, now time.Time, busy, hangs bool) {
	switch {
	case first.flow.ended.Load(): // replacement does
	case !hangs && !s.old(first, now):
		s.drop(s.second.pipeline, errPipelineClosed)
		s.second.pipeline, s.second.given = nil, 0
	case s.second.pipeline == nil:
		if busy && !now.Before(s.second.again) {
			s.second.pipeline = s.newPipeline()
		}
	case s.second.flow.ended.Load():
		s.giveUp(now)
	case s.second.opened():
		s.first.Store(s.second.pipeline)
		s.second.pipeline, s.second.given, s.leaving = nil, 0, append(s.leaving, first)
		if len(s.leaving) > mostLeaving {
			s.drop(s.leaving[0], errHangs)
			s.leaving = s.leaving[1:]
		}
	case now.Sub(s.second.born) >= s.secondTime():
		s.giveUp(now)
		s.second.given++
	}
}

// giveUp ends a second pipeline that is not connected. The mutex is held.
func (s *pipelines) giveUp(now time.Time) {
	s.drop(s.second.pipeline, errPipelineClosed)
	s.second.pipeline, s.second.again = nil, now.Add(secondPause)
}

// secondTime is how long a second pipeline is being connected before another one is: what
// it has sent may be lost, or it needs longer than that, so the next has twice the time. The
// timeout is enough for all whose calls can be answered within it.
func (s *pipelines) secondTime() time.Duration {
	return max(s.timeout/4<<min(s.second.given, 2), 10*time.Duration(s.trip.Load()))
}

// part closes those that leave, and reports whether there are others. The mutex is held.
func (s *pipelines) part(now time.Time) (busy bool) {
	s.leaving = slices.DeleteFunc(s.leaving, func(p *pipeline) bool {
		_, quiet := p.look(now)
		if quiet < s.timeout && !p.retire() {
			p.sendElsewhere(quiet, s.timeout)
			return false
		}
		s.drop(p, errNoAnswer)
		return true
	})
	return len(s.leaving) > 0
}

// close ends them all, once: first who makes others, then those that there are.
func (s *pipelines) close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return
	}
	s.shared.stop()
	s.mu.Lock()
	for _, p := range append(s.leaving, s.first.Load(), s.second.pipeline) {
		s.drop(p, errPipelineClosed)
	}
	s.second.pipeline, s.leaving = nil, nil
	s.mu.Unlock()
	s.worker.Wait()
}
