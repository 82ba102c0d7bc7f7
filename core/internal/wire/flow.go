package wire

import (
	"sync/atomic"
	"time"
)

// flow holds the measurements of one pipeline: how long a round trip takes, and how long nothing has
// arrived although an answer is awaited. The pipeline's mutex guards all fields except the atomic
// ones. All pipelines of a node share trip.
type flow struct {
	quiet  time.Time // since when nothing has arrived
	looked time.Time // when quiet was last checked
	slow   int       // number of commands at the front of the queue that are marked as slow
	sample sample
	trip   *atomic.Int64
	old    atomic.Bool // the server is no longer a master
	ended  atomic.Bool
}

// sample is the command whose round trip is measured, one at a time, from its writing to the connection.
type sample struct {
	since time.Time
	ahead int // number of replies up to and including its reply; 0: no sample
}

// Times for commands under way and for connections. moment and longestMoment are the minimum and the maximum
// of a time that grows with the round trip.
const (
	// moment is how long a caller waits before it pays for a timer, and the shortest time that counts as
	// slow.
	moment = 5 * time.Millisecond
	// longestMoment is the time after which every call counts as slow, however far away Redis is. Before
	// that time, not even the end of its context interrupts a call. It is also the shortest time without
	// a reply that counts as a hang.
	longestMoment = 50 * time.Millisecond
	// settling is how long this process may take to read an answer that arrived.
	settling = 20 * time.Millisecond
	// waking is the same time for a process that was stopped, or that got no time on a busy machine, and
	// just continues.
	waking = 200 * time.Millisecond
	// sleep is how long the process has to stall before the stall is subtracted from the silence of a node. A
	// smaller value could postpone the timeout for ever.
	sleep = 100 * time.Millisecond
	// unread is how long a connection has no reader while there are no calls.
	unread = 2 * moment
	// leastPause is the pause after a failed attempt to connect. It doubles each time, up to mostPause.
	leastPause, mostPause = 20 * time.Millisecond, 500 * time.Millisecond
	// pingPause is the shortest time between pings on a connection without commands.
	pingPause = 100 * time.Millisecond
)

// Limits on calls, bytes and connections. When Redis is near, the write is half of the cost of a call to this
// process. So the more calls are under way, the longer a writer collects commands of others.
const (
	// gathersFrom is the number of commands under way from which a caller that writes lets other callers go
	// first and then writes for all of them. With fewer commands, each caller writes at once, which keeps
	// this process and Redis busy at the same time. With batches, one waits for the other.
	gathersFrom = 9
	// writerAbove is the number of commands under way above which the writer goroutine writes.
	writerAbove = 64
	// roomy is the number of bytes under way that fit into any socket buffer. Beyond it a write may wait for
	// Redis to read. Then the writer goroutine writes, because a caller that writes cannot react to anything
	// else.
	roomy = 16 << 10
	// readsAfter is the number of calls in a row, each alone on its pipeline, after which callers read their replies
	// themselves.
	readsAfter = 4
	// mostAttempts is the maximum number of connections that are opened at the same time.
	mostAttempts = 3
	// mostLeaving is the maximum number of pipelines that complete their last commands (see
	// [lines]). Beyond it the oldest is closed.
	mostLeaving = 8
	// idleLooks is the number of checks without anything to do after which [lines.watch] sleeps.
	idleLooks = 20
)

// wokeAfter reports whether a wait returned so long after its limit that this process cannot have run in
// between.
func wokeAfter(limit time.Time) bool { return time.Since(limit) > 2*moment }

// start records that there is a connection on which replies may now arrive.
func (f *flow) start() {
	f.quiet = time.Now()
	f.sample.since = f.quiet
}

// enter records a command that is the n-th under way.
func (f *flow) enter(n int) {
	if f.sample.ahead > 0 {
		return
	}
	f.sample = sample{since: time.Now(), ahead: n}
	if n == 1 {
		f.quiet = f.sample.since
	}
}

// hear records that replies arrived.
func (f *flow) hear(now time.Time, replies int) {
	f.quiet, f.slow = now, max(0, f.slow-replies)
	if f.sample.ahead == 0 {
		return
	}
	if f.sample.ahead -= min(replies, f.sample.ahead); f.sample.ahead == 0 {
		f.measure(now.Sub(f.sample.since))
	}
}

// measure updates the average round trip. A round trip counts as at most the time after which the pipeline
// hangs. So a single long round trip hardly lengthens that time, while several in a row do.
func (f *flow) measure(took time.Duration) {
	trip, hanging := time.Duration(f.trip.Load()), f.hangsAfter()
	if trip == 0 && took < hanging {
		f.trip.Store(int64(took))
		return
	}
	f.trip.Store(int64(trip + (min(took, hanging)-trip)/8))
}

// near reports whether Redis is so near that a caller may read its reply itself.
func (f *flow) near() bool { return f.trip.Load() < int64(moment) }

// slowAfter returns the time after which a call is slow: a few round trips.
func (f *flow) slowAfter() time.Duration {
	return min(max(moment, 4*time.Duration(f.trip.Load())), longestMoment)
}

// hangsAfter returns the time without any reply after which another connection is opened.
func (f *flow) hangsAfter() time.Duration {
	return max(longestMoment, 8*time.Duration(f.trip.Load()))
}

// interruptAfter returns the time without any reply after which callers are interrupted, except the caller of the
// first command; see [pipeline.interruptHanging]. By that time Redis has long answered on the other
// connection.
func (f *flow) interruptAfter() time.Duration { return f.hangsAfter() + settling }

// subtractStall subtracts the time in which this process did not run from the quiet time. After a stop, or on a
// busy machine, the check is late, and replies that arrived were not read yet.
func (f *flow) subtractStall(now time.Time) {
	since := f.quiet
	if f.looked.After(since) {
		since = f.looked
	}
	if late := now.Sub(since) - 2*moment; late > 0 {
		f.quiet = f.quiet.Add(late)
	}
	f.looked = now
}
