package locktest

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Bubble runs a test on the embedded Redis in a bubble of package synctest, in which hours take no real time.
func Bubble(t *testing.T, body func(t *testing.T, b *Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		EndWithinADay(t)
		body(t, Embedded(t))
	})
}

// BubbleOf runs a test on n embedded servers in a bubble.
func BubbleOf(t *testing.T, n int, body func(t *testing.T, servers []*Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		EndWithinADay(t)
		body(t, NewServers(t, n))
	})
}

// EndWithinADay panics if a bubble still runs after a day of its time. Without it, a test that waits for an event that
// never comes would run for ever beside timers that go on, such as renewals. The longest test takes two hours.
func EndWithinADay(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(24*time.Hour, func() {
		panic(t.Name() + ": still waits after a day of the bubble:\n\n" + bubbleStacks())
	})
	t.Cleanup(func() { timer.Stop() })
}

// bubbleStacks returns the stacks of the goroutines in the bubble of the caller.
func bubbleStacks() string {
	buf := make([]byte, 64<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	header, _, _ := strings.Cut(all[0], "\n") // the stack of the caller comes first
	_, bubble, ok := strings.Cut(header, "synctest bubble ")
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool {
		header, _, _ := strings.Cut(stack, "\n")
		return !ok || !strings.Contains(header, "synctest bubble "+bubble)
	}), "\n\n")
}

// Pass lets d go by in a bubble and then waits until all its goroutines are blocked.
func Pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

// timesEnv is 1 on a machine that runs nothing but the tests, so that bounds on real time hold.
const timesEnv = "INTERLOCK_TIMES"

// IsQuiet reports whether INTERLOCK_TIMES is 1: the machine runs nothing but the tests.
func IsQuiet() bool { return os.Getenv(timesEnv) == "1" }

// Measured returns a bound on real time, outside of a bubble. On a machine that is not quiet it adds 30 s.
func Measured(bound time.Duration) time.Duration {
	if IsQuiet() {
		return bound
	}
	return bound + 30*time.Second
}

// Unhurried returns a lease, or a time limit for Redis, that a test must not miss by chance. On a machine that is not
// quiet it adds 8 s.
func Unhurried(d time.Duration) time.Duration {
	if IsQuiet() {
		return d
	}
	return d + 8*time.Second
}

// HangTimeout is the time after which a test counts as hanging. No test asserts it.
const HangTimeout = 5 * time.Minute

// Slack is added to a bound on real time on any machine.
const Slack = 2 * time.Second

// Eventually polls until ok returns true, and fails the test after HangTimeout.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(HangTimeout)
	for !ok() {
		if <-tick.C; time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// EventuallyCollected is like Eventually, but for conditions that depend on the garbage collector. It collects garbage
// at most every 50 ms, because each collection stops the tests that run in parallel.
func EventuallyCollected(t *testing.T, what string, ok func() bool) {
	t.Helper()
	var next time.Time
	Eventually(t, what, func() bool {
		if time.Now().Before(next) {
			return false
		}
		runtime.GC()
		next = time.Now().Add(50 * time.Millisecond)
		return ok()
	})
}

// WithinASecond polls until ok returns true, and fails the test after a second. A failed Acquire may leave keys for a
// second.
func WithinASecond(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Measured(time.Second)); !ok(); time.Sleep(200 * time.Microsecond) { // a poll with a bound, not a guess
		if time.Now().After(end) {
			t.Errorf("%s: not within a second", what)
			return
		}
	}
}

// Parallel runs a parallel subtest.
func Parallel(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		body(t)
	})
}

// ParallelBubble runs Bubble as a parallel subtest.
func ParallelBubble(t *testing.T, name string, body func(t *testing.T, b *Redis)) {
	t.Helper()
	Parallel(t, name, func(t *testing.T) { Bubble(t, body) })
}

// ParallelBubbleOf runs BubbleOf as a parallel subtest.
func ParallelBubbleOf(t *testing.T, name string, n int, body func(t *testing.T, servers []*Redis)) {
	t.Helper()
	Parallel(t, name, func(t *testing.T) { BubbleOf(t, n, body) })
}

// ParallelEachRedis runs EachRedis as a parallel subtest.
func ParallelEachRedis(t *testing.T, name string, body func(t *testing.T, b *Redis)) {
	t.Helper()
	Parallel(t, name, func(t *testing.T) { EachRedis(t, body) })
}

// A Subtest has a name and a body. See Together.
type Subtest struct {
	Name string
	Body func(t *testing.T)
}

// Together concurrently runs subtests that mostly wait. Package testing counts them as one parallel test.
func Together(t *testing.T, subtests ...Subtest) {
	t.Helper()
	Concurrently(len(subtests), func(i int) { t.Run(subtests[i].Name, subtests[i].Body) })
}

// Concurrently runs n calls at the same time and waits for them.
func Concurrently(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}
