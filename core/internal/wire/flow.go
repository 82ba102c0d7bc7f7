package wire

import (
	"sync/atomic"
	"time"
)

// flow is what is measured on one pipeline: how long a round trip takes, and for how long nothing has
// come although an answer is awaited. The pipeline's mutex guards it, except for the atomic fields.
// The round trip belongs to the node.
type flow struct {
	quiet  time.Time // since when nothing has come
	looked time.Time // when quiet was looked at
	slow   int       // how many from the front of the queue are marked as slow
	sample sample
	trip   *atomic.Int64
	old    atomic.Bool // it leads to a node that is not a master any more
	ended  atomic.Bool
}

// sample is the command whose round trip is measured: one at a time, from when the connection has it.
type sample struct {
	since time.Time
	ahead int // replies up to and including its own; 0: no sample
}

// The times after which a command under way gets attention. The first two are the least and the most of a
// time that grows with the round trip.
const (
	// moment is how long a caller waits before it pays for a timer, and the least that counts as
	// slow.
	moment = 5 * time.Millisecond
	// longestMoment is the most that counts as slow, however far away Redis is: nothing can interrupt a
	// call before. It is also the least that counts as a hang.
	longestMoment = 50 * time.Millisecond
	// settling is how long an answer that has arrived may take to be read.
	settling = 20 * time.Millisecond
	// waking is the same for a process that has just gone on after it was stopped, or that got no time on
	// a busy machine.
	waking = 200 * time.Millisecond
	// sleep is how long the process has to stand still before that time is subtracted from a node's silence. A
	// smaller value could postpone the timeout for ever.
	sleep = 100 * time.Millisecond
	// unread is how long a connection has no reader while there are no calls.
	unread = 2 * moment
	// leastPause is the pause after a failed attempt to connect. It doubles each time, up to mostPause.
	leastPause, mostPause = 20 * time.Millisecond, 500 * time.Millisecond
	// pingPause is the least time between pings on a connection without commands.
	pingPause = 100 * time.Millisecond
)

// The numbers of calls, or of bytes, from which another way is cheaper. A write is half of what a call costs
// this process when Redis is near. So the more calls are under way, the longer a writer collects commands of
// others.
const (
	// gathersFrom is from how many commands under way a caller that writes lets other callers go first, and
	// then writes for all of them. With fewer, each caller writes at once: commands on their way keep this
	// process and Redis busy at the same time, while with batches each waits for the other.
	gathersFrom = 9
	// writerAbove is above how many commands under way the writer writes.
	writerAbove = 64
	// roomy is for how many bytes under way any socket has room. Beyond it a write may wait for Redis to
	// read. Then the writer writes, because a caller that writes notices nothing else.
	roomy = 16 << 10
	// readsAfter is after how many calls in a row that were alone callers read their replies themselves.
	readsAfter = 4
	// mostAttempts is how many connections are made at the same time.
	mostAttempts = 3
	// mostLeaving is how many pipelines leave at the same time; the oldest is closed to make room.
	mostLeaving = 8
	// idleLooks is after how many looks without anything to do the watch sleeps.
	idleLooks = 20
)

// wokeAfter reports whether a wait has ended so long after its limit that this process cannot have
// run.
func wokeAfter(limit time.Time) bool { return time.Since(limit) > 2*moment }

// begins notes that there is a connection, on which replies may now come.
func (f *flow) begins() {
	f.quiet = time.Now()
	f.sample.since = f.quiet
}

// enter notes that a command is the n-th under way.
func (f *flow) enter(n int) {
	if f.sample.ahead > 0 {
		return
	}
	f.sample = sample{since: time.Now(), ahead: n}
	if n == 1 {
		f.quiet = f.sample.since
	}
}

// hear notes that replies have come.
func (f *flow) hear(now time.Time, replies int) {
	f.quiet, f.slow = now, max(0, f.slow-replies)
	if f.sample.ahead == 0 {
		return
	}
	if f.sample.ahead -= min(replies, f.sample.ahead); f.sample.ahead == 0 {
		f.measure(now.Sub(f.sample.since))
	}
}

// measure takes a round trip into account. A round trip that takes so long that the pipeline hangs counts as
// no longer than that: a single one hardly lengthens what counts as a hang, while several in a row
// mean that Redis is far away.
func (f *flow) measure(took time.Duration) {
	trip, hanging := time.Duration(f.trip.Load()), f.hanging()
	if trip == 0 && took < hanging {
		f.trip.Store(int64(took))
		return
	}
	f.trip.Store(int64(trip + (min(took, hanging)-trip)/8))
}

// near reports whether a reply comes so soon that its caller may read it.
func (f *flow) near() bool { return f.trip.Load() < int64(moment) }

// patient returns how long a call takes before it is slow: a few round trips.
func (f *flow) patient() time.Duration {
	return min(max(moment, 4*time.Duration(f.trip.Load())), longestMoment)
}

// hanging returns how long nothing comes before another connection is made.
func (f *flow) hanging() time.Duration {
	return max(longestMoment, 8*time.Duration(f.trip.Load()))
}

// stuck returns how long nothing comes before the callers behind another command send again. The
// other connection has long been answered by that time.
func (f *flow) stuck() time.Duration { return f.hanging() + settling }

// awake removes from the quiet the time in which this process did not run. After a stop, or on a busy
// machine, it looks late, and reads only now what has come.
func (f *flow) awake(now time.Time) {
	since := f.quiet
	if f.looked.After(since) {
		since = f.looked
	}
	if late := now.Sub(since) - 2*moment; late > 0 {
		f.quiet = f.quiet.Add(late)
	}
	f.looked = now
}
