package wire

import (
	"sync/atomic"
	"time"
)

// flow is what is measured on one pipeline: how long a round trip takes, and for how long
// nothing has come although something is awaited. The pipeline's mutex guards it, except
// for what is atomic. The round trip is that of the node.
type flow struct {
	quiet  time.Time // since when
	looked time.Time // when quiet was looked at
	slow   int       // how many from the front of the queue know that they are slow
	sample sample
	trip   *atomic.Int64
	old    atomic.Bool // it leads to a node that has stopped being a master
	ended  atomic.Bool
}

// sample is the command of which the round trip is measured: one at a time, from when the
// connection has it.
type sample struct {
	since time.Time
	ahead int // replies until its own is there; 0: there is none
}

// How long what is under way may take before something is done about it. The first two are
// the least and the most of what grows with the round trip.
const (
	// patience is how long a caller waits before it pays for a timer of its own, and the
	// least that counts as slow.
	patience = 5 * time.Millisecond
	// mostPatience is the most that counts as slow, however far Redis is: for so long nothing
	// can interrupt a call. It is the least that counts as a hang.
	mostPatience = 50 * time.Millisecond
	// settling is for what Redis has answered, and is about to be read.
	settling = 20 * time.Millisecond
	// waking is for the same where this process has just gone on after it was stopped, or got
	// no time on a busy machine.
	waking = 200 * time.Millisecond
	// sleep is the least that is left out of the silence of a node. A little less would keep
	// the end of the timeout from being one.
	sleep = 100 * time.Millisecond
	// unread is how long a connection has no reader while nobody calls.
	unread = 2 * patience
	// leastPause and mostPause are how long there is no other attempt to connect after one that has failed: twice as
	// long each time.
	leastPause, mostPause = 20 * time.Millisecond, 500 * time.Millisecond
	// pingPause is how long after a ping on a connection without commands there is no other.
	pingPause = 100 * time.Millisecond
)

// How many calls, or bytes of them, make another way the cheaper one. A write is half of what
// a call costs this process when Redis is near; so the more are under way the longer a writer
// collects what others have to say.
const (
	// gathersFrom is how many under way have a caller that writes let the others that can run go first: it then
	// writes for all of them. Fewer callers each write at once: commands on their way keep this process and Redis
	// busy at the same time, where batches have each wait for the other.
	gathersFrom = 9
	// writerAbove is how many under way leave that to the writer.
	writerAbove = 64
	// roomy is how many bytes of calls under way any socket has room for. Beyond it a write
	// may wait for Redis to read, and then it is the writer's: a caller that writes notices
	// nothing else.
	roomy = 16 << 10
	// readsAfter is how many calls in a row are alone before they read themselves.
	readsAfter = 4
	// mostAttempts is how many connections are being made at the same time.
	mostAttempts = 3
	// mostLeaving is how many pipelines leave at the same time; the oldest makes room.
	mostLeaving = 8
	// idleLooks is how many looks in vain end the looking.
	idleLooks = 20
)

// wokeAfter reports whether a wait that was to end at a time has ended so late that this
// process cannot have run.
func wokeAfter(limit time.Time) bool { return time.Since(limit) > 2*patience }

// begins notes that there is a connection: from now on something may come.
func (f *flow) begins() {
	f.quiet = time.Now()
	f.sample.since = f.quiet
}

// enters notes that a command is the n-th that is under way.
func (f *flow) enters(n int) {
	if f.sample.ahead > 0 {
		return
	}
	f.sample = sample{since: time.Now(), ahead: n}
	if n == 1 {
		f.quiet = f.sample.since
	}
}

// heard notes that replies have come.
func (f *flow) heard(now time.Time, replies int) {
	f.quiet, f.slow = now, max(0, f.slow-replies)
	if f.sample.ahead == 0 {
		return
	}
	if f.sample.ahead -= min(replies, f.sample.ahead); f.sample.ahead == 0 {
		f.measured(now.Sub(f.sample.since))
	}
}

// measured takes a round trip into account. One that takes so long that the pipeline hangs
// counts as no longer than that: a single one hardly lengthens what counts as a hang, while
// several after each other say that Redis is far.
func (f *flow) measured(took time.Duration) {
	trip, hanging := time.Duration(f.trip.Load()), f.hanging()
	if trip == 0 && took < hanging {
		f.trip.Store(int64(took))
		return
	}
	f.trip.Store(int64(trip + (min(took, hanging)-trip)/8))
}

// near reports whether a reply comes so soon that its caller may read it itself.
func (f *flow) near() bool { return f.trip.Load() < int64(patience) }

// patient is how long a call takes before it is slow: a few round trips.
func (f *flow) patient() time.Duration {
	return min(max(patience, 4*time.Duration(f.trip.Load())), mostPatience)
}

// hanging is how long nothing comes before another connection is made.
func (f *flow) hanging() time.Duration {
	return max(mostPatience, 8*time.Duration(f.trip.Load()))
}

// stuck is how long nothing comes before those who wait behind another one send again. The
// other connection has long been answered by then.
func (f *flow) stuck() time.Duration { return f.hanging() + settling }

// awake leaves out of the quiet the time in which this process did not run: stopped, or on a
// machine that is busy, it has looked late, and what has come meanwhile is read only now.
func (f *flow) awake(now time.Time) {
	since := f.quiet
	if f.looked.After(since) {
		since = f.looked
	}
	if late := now.Sub(since) - 2*patience; late > 0 {
		f.quiet = f.quiet.Add(late)
	}
	f.looked = now
}
