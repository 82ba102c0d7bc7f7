package wire

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Acks is the number of replicas that have to acknowledge a command.
type Acks int

// Special values of Acks. A positive value is a number of replicas.
const (
	// NoAcks requires no acknowledgement.
	NoAcks Acks = 0
	// MajorityAcks requires enough replicas to form a majority of the servers together with the master.
	MajorityAcks Acks = -1
	// AllAcks requires all replicas.
	AllAcks Acks = -2
)

// among returns the required number for a master with this many replicas.
func (a Acks) among(replicas int) int {
	switch a {
	case MajorityAcks:
		return (replicas + 1) / 2
	case AllAcks:
		return replicas
	default:
		return int(a)
	}
}

// Replication configures how many replicas have to acknowledge a command, and the time limit.
type Replication struct {
	Acks    Acks
	Timeout time.Duration // how long the replicas have to acknowledge
}

// acker sends to one node the commands that replicas have to acknowledge. WAIT covers only the writes of
// its own connection, and it delays all later commands on that connection. So the acker uses separate
// connections. On each, it runs one exchange at a time.
type acker struct {
	life // its mutex guards idle

	origin   *origin
	lines    *lines // sends the questions about replicas
	wants    Replication
	replicas *replicas
	sight    sight
	room     chan struct{} // one element for each exchange under way
	idle     []*pipeline
	refused  *pipeline // the last connection that Redis refused; nil if Redis has accepted one since
	again    time.Time // when another connection may be tried after refused
	trip     atomic.Int64
}

func newAcker(l *lines, wants Replication, room int, r *replicas) *acker {
	a := &acker{origin: l.origin, lines: l, wants: wants, replicas: r, room: make(chan struct{}, room)}
	a.sight.start = time.Now()
	a.begin()
	a.workers.Go(a.closeIdle)
	return a
}

// closeIdle closes the idle connections when the acker is closed.
func (a *acker) closeIdle() {
	<-a.ctx.Done()
	a.mu.Lock()
	idle := a.idle
	a.idle = nil
	a.mu.Unlock()
	for _, p := range idle {
		p.drop(errPipelineClosed)
	}
}

// take returns an idle connection, or a new one. While Redis refuses connections, take opens only one per mostPause.
// Otherwise it returns the refused connection, whose error becomes the error of the commands.
func (a *acker) take() *pipeline {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for len(a.idle) > 0 {
		p := a.idle[len(a.idle)-1]
		a.idle = a.idle[:len(a.idle)-1]
		if !p.flow.ended.Load() && !p.progress.overdue(now) && !a.origin.old(p, now) {
			return p
		}
		a.workers.Go(func() { p.drop(errPipelineClosed) })
	}
	if a.refused != nil && now.Before(a.again) {
		return a.refused
	}
	a.again = now.Add(mostPause)
	return a.origin.pipeline(maxQueued, &a.trip, func() {})
}

// give makes a connection idle. It closes the connection if the connection broke or the acker is closed.
func (a *acker) give(p *pipeline) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ended := p.flow.ended.Load()
	switch {
	case !ended && p.isOpen():
		a.refused = nil
	case ended && FateOf(p.reason()) == Answered:
		a.refused = p
	}
	if a.closed || ended {
		a.workers.Go(func() { p.drop(errPipelineClosed) })
		return
	}
	a.idle = append(a.idle, p)
}

// need returns the number of replicas that have to acknowledge a write to slots.
func (a *acker) need(slots []int) int {
	most := int(a.sight.most.Load())
	for _, slot := range slots {
		most = max(most, a.replicas.raise(slot, most))
	}
	return a.wants.Acks.among(most)
}

// prepare returns the acknowledgement for commands that may take until limit. If the required
// number depends on the number of replicas, the first call asks the node, which takes a round trip.
func (a *acker) prepare(ctx context.Context, limit time.Time, slots ...int) (*acknowledgement, error) {
	limit = within(ctx, limit)
	if a.wants.Acks < 0 && !a.sight.known() {
		if err := a.count(ctx, limit); err != nil {
			return nil, err
		}
	}
	left := time.Until(limit)
	return &acknowledgement{slots: slots, wanted: a.need(slots), wait: min(a.wants.Timeout, left-left/10)}, nil
}

// count asks the master for the number of its replicas.
func (a *acker) count(ctx context.Context, limit time.Time) error {
	info, err := a.lines.ask(ctx, limit, "info", "replication")
	if err != nil {
		return &replicasError{err}
	}
	if a.note(info); !a.sight.known() {
		return &replicasError{&UnreadableError{fmt.Errorf("INFO replication: unexpected reply %T", info.reply)}}
	}
	return nil
}

func (a *acker) note(info *command) {
	if text, ok := info.reply.(string); ok && info.failure == nil {
		a.sight.note(text)
	}
}

// replicasError means that the master did not report the number of its replicas.
type replicasError struct{ cause error }

func (e *replicasError) Error() string {
	return "the master could not be asked for its replicas: " + e.cause.Error()
}

func (e *replicasError) Unwrap() error { return e.cause }

// submit sends commands and the WAIT for their replicas. They are completed together.
func (a *acker) submit(cmds []*command) {
	x := &exchange{acker: a, ack: cmds[0].ack, limit: cmds[0].limit, cmds: append([]*command(nil), cmds...)}
	for _, c := range x.cmds {
		c.wake = make(chan struct{}, 1)
	}
	a.mu.Lock()
	open := !a.closed
	if open {
		a.workers.Add(1) // until the end of the exchange
	}
	a.mu.Unlock()
	if !open {
		x.complete(&unsentError{redis.ErrClosed})
		return
	}
	select {
	case a.room <- struct{}{}:
		x.begin()
	default:
		a.workers.Go(x.enter)
	}
}

// exchange sends commands and their WAIT once, on a connection that serves no other exchange at the same time.
type exchange struct {
	acker    *acker
	pipeline *pipeline
	cmds     []*command
	ack      *acknowledgement
	limit    time.Time

	scripts    []*command
	wait, info *command
	end        func() bool  // stops the time limit; false: the limit was reached, and the pipeline recalls the commands
	left       atomic.Int32 // commands without an answer, plus one for begin
}

// enter waits for room.
func (x *exchange) enter() {
	ctx, cancel := context.WithDeadline(x.acker.ctx, x.limit)
	defer cancel()
	select {
	case x.acker.room <- struct{}{}:
		x.begin()
	case <-ctx.Done():
		x.complete(&unsentError{errNoRoom})
		x.acker.workers.Done()
	}
}

// begin sends the scripts and the WAIT. If the number of replicas is old, it also sends INFO.
func (x *exchange) begin() {
	x.pipeline = x.acker.take()
	var all []*command
	for _, c := range x.cmds {
		script := internal(x.countAnswer, c.given...)
		script.asking = c.asking
		x.scripts = append(x.scripts, script)
	}
	x.wait = internal(x.countAnswer, x.ack.command()...)
	all = append(append(all, x.scripts...), x.wait)
	if x.acker.sight.old() {
		x.info = internal(x.countAnswer, "info", "replication")
		all = append(all, x.info)
	}
	x.left.Store(int32(len(all)) + 1)
	for _, c := range all {
		if err := x.pipeline.submit(c); err != nil {
			c.complete(nil, err)
		}
	}
	limited, cancel := context.WithDeadlineCause(x.acker.ctx, x.limit, errNoAnswer)
	stop := context.AfterFunc(limited, func() { // after submit, because it recalls the submitted commands
		x.pipeline.recall(context.Cause(limited))
		x.leave()
		x.acker.workers.Done()
	})
	x.end = func() bool {
		defer cancel()
		return stop()
	}
	x.countAnswer()
}

// countAnswer completes the exchange after the last answer.
func (x *exchange) countAnswer() {
	if x.left.Add(-1) > 0 {
		return
	}
	if x.end() { // otherwise the pipeline serves no other exchange before the recall has ended
		x.leave()
		defer x.acker.workers.Done()
	}
	x.ack.short = x.shortfall()
	for i, c := range x.cmds {
		c.complete(x.scripts[i].reply, x.scripts[i].failure)
	}
}

// leave makes room for another exchange.
func (x *exchange) leave() {
	x.acker.give(x.pipeline)
	<-x.acker.room
}

// complete completes an exchange that was not sent.
func (x *exchange) complete(err error) {
	for _, c := range x.cmds {
		c.complete(nil, err)
	}
}

// shortfall compares the acknowledgements with the required number. The answer to INFO after the WAIT also
// counts, because a replica that appeared in between may be the next master.
func (x *exchange) shortfall() *ShortfallError {
	if x.info != nil {
		x.acker.note(x.info)
	}
	wanted := max(x.ack.wanted, x.acker.need(x.ack.slots))
	got, isNumber := x.wait.reply.(int64)
	if x.wait.failure == nil && isNumber && int(got) >= wanted {
		return nil
	}
	x.acker.sight.forget()
	return &ShortfallError{Wanted: wanted, Acknowledged: int(got), Replicas: x.acker.sight.now(), Cause: x.wait.failure}
}

// replicas holds the largest number of replicas that this client saw at a master. The number never
// falls when a replica disappears, because that replica may become the master, and the writes that
// it lacks would be lost. In a Cluster each slot has a number, because its master changes in a
// failover.
type replicas struct{ most []atomic.Int32 }

func newReplicas(n int) *replicas { return &replicas{most: make([]atomic.Int32, n)} }

// raise records the present number and returns the largest one.
func (r *replicas) raise(slot, now int) int {
	most := &r.most[slot%len(r.most)]
	for {
		before := most.Load()
		if int(before) >= now {
			return int(before)
		}
		if most.CompareAndSwap(before, int32(now)) {
			return now
		}
	}
}

// lookEvery is the maximum age of the number of replicas of a node. An exchange that finds an older
// number sends INFO after its WAIT, without an extra round trip.
const lookEvery = time.Second

// sight holds the number of replicas that a node had when it was last asked.
type sight struct {
	start time.Time
	last  atomic.Int64 // number + 1; 0: the node was not asked yet
	most  atomic.Int64
	at    atomic.Int64 // time of the last answer, relative to start
}

// note records an answer of the node.
func (s *sight) note(info string) {
	n := int64(replicasIn(info))
	s.at.Store(int64(time.Since(s.start)))
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.last.Store(n + 1)
}

// known reports whether the node has reported a number.
func (s *sight) known() bool { return s.last.Load() > 0 }

// now returns the last number, -1 if there is none.
func (s *sight) now() int { return int(s.last.Load()) - 1 }

// old reports whether the node should be asked again. If so, the node counts as asked.
func (s *sight) old() bool {
	now, at := int64(time.Since(s.start)), s.at.Load()
	return now-at >= int64(lookEvery) && s.at.CompareAndSwap(at, now)
}

// forget makes the next exchange ask again.
func (s *sight) forget() { s.at.Store(-int64(lookEvery)) }

// replicasIn counts the replicas in the answer to INFO replication, including those that are being
// synchronized. A replica that reconnected may be listed twice. It counts once if its old
// connection sent nothing for more than a second. Several replicas may have one address because of
// address translation. All of them count, because each sends something every second.
func replicasIn(info string) (n int) {
	type address struct{ ip, port string }
	speaking := make(map[address]int)
	for line := range strings.Lines(info) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if number, is := strings.CutPrefix(name, "slave"); !ok || !is || !consists(number, digits) {
			continue
		}
		fields := make(map[string]string)
		for pair := range strings.SplitSeq(values, ",") {
			key, value, _ := strings.Cut(pair, "=")
			fields[key] = value
		}
		at := address{fields["ip"], fields["port"]}
		lag, err := strconv.Atoi(fields["lag"])
		if fields["state"] == "online" && err == nil && lag <= 1 {
			speaking[at]++
		} else if speaking[at] == 0 {
			speaking[at] = 0
		}
	}
	for _, lines := range speaking {
		n += max(lines, 1)
	}
	return n
}
