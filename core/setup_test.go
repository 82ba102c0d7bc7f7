package core_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// TestMain leaves out a goroutine of go-redis that looks only once a second whether its
// client was closed, after many failures to connect.
func TestMain(m *testing.M) {
	waitTogether()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// waitTogether has three times as many tests run at once as there are processors, unless
// -parallel says how many: most of them wait.
func waitTogether() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// bed is one Redis that a test has to itself, and a client beside the locks to look
// at it.
type bed struct {
	*redis.Client

	t        *testing.T
	embedded bool          // not a real server
	opts     []core.Option // of every client that locks and counted make
	connect  func(opts ...func(*redis.Options)) *redis.Client
}

// eachBed runs a test on the embedded Redis, and on a real one of each binary.
func eachBed(t *testing.T, body func(t *testing.T, b *bed)) {
	t.Helper()
	parallel(t, "embedded", func(t *testing.T) {
		b := embeddedBed(t)
		b.opts = []core.Option{patient}
		body(t, b)
	})
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		t.Helper()
		body(t, bedOf(t, binary.Start(t)))
	})
}

func wantOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// wantSame compares.
func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantGot compares the result of a call that may fail.
func wantGot[T comparable](t *testing.T, what string, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
}

// wantSoon wants no more than bound to have passed since start. The format has one verb, for how long it took.
func wantSoon(t *testing.T, format string, start time.Time, bound time.Duration) {
	t.Helper()
	if took := time.Since(start); took > bound {
		t.Errorf(format+", want at most %s", took, bound)
	}
}

// parallel runs a subtest beside others; parallelBubble and the like do so as inBubble and the like.
func parallel(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		body(t)
	})
}

func parallelBubble(t *testing.T, name string, body func(t *testing.T, b *bed)) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { inBubble(t, body) })
}

func parallelBeds(t *testing.T, name string, body func(t *testing.T, b *bed)) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { eachBed(t, body) })
}

func parallelSorts(t *testing.T, name string, body func(t *testing.T, w *world), opts ...core.Option) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { eachSort(t, body, opts...) })
}

func parallelIslands(t *testing.T, name string, n int, body func(t *testing.T, servers []*island)) {
	t.Helper()
	parallel(t, name, func(t *testing.T) { onIslands(t, n, body) })
}

// oneOf is a subtest that does hardly anything but wait.
type oneOf struct {
	name string
	body func(t *testing.T)
}

// together runs them all at once, in the place of one among the tests that run at once.
func together(t *testing.T, subtests ...oneOf) {
	t.Helper()
	eachOf(len(subtests), func(i int) { t.Run(subtests[i].name, subtests[i].body) })
}

func embeddedBed(t *testing.T) *bed {
	t.Helper()
	srv := redistest.New(t)
	return &bed{t: t, embedded: true, Client: srv.Client(), connect: srv.Client}
}

func serverBed(t *testing.T) *bed {
	t.Helper()
	return bedOf(t, redisserver.Start(t))
}

func bedOf(t *testing.T, srv *redisserver.Server) *bed {
	t.Helper()
	return &bed{t: t, Client: srv.Client(), connect: srv.Client, opts: []core.Option{patient}}
}

// inBubble runs a test of time on the embedded Redis: hours take no time.
func inBubble(t *testing.T, body func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		endsWithinADay(t)
		body(t, embeddedBed(t))
	})
}

// endsWithinADay ends all tests when one in a bubble is still there after a day of its time. Who waits
// there for what never comes would else wait for as long as anything else goes on, such as renewals,
// with no pause between them, and leave the other tests no processor. The longest test takes two hours.
func endsWithinADay(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(24*time.Hour, func() {
		panic(t.Name() + ": a day of the bubble is over, and it still waits:\n\n" + bubbleStacks())
	})
	t.Cleanup(func() { timer.Stop() })
}

// bubbleStacks are the stacks of the goroutines in the bubble in which it is called.
func bubbleStacks() string {
	buf := make([]byte, 64<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	header, _, _ := strings.Cut(all[0], "\n") // its own comes first
	_, own, ok := strings.Cut(header, "synctest bubble ")
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool {
		header, _, _ := strings.Cut(stack, "\n")
		return !ok || !strings.Contains(header, "synctest bubble "+own)
	}), "\n\n")
}

// locks makes a lock client, as another process would have it. What it still holds
// at the end of the test is left behind.
func (b *bed) locks(opts ...core.Option) *core.Client {
	b.t.Helper()
	return locksOn(b.t, b.connect(), slices.Concat(b.opts, opts)...)
}

func locksOn(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	must(t, err)
	t.Cleanup(func() { _ = locks.Close(t.Context()) }) // the context has ended: at once
	return locks
}

// counted is locks, and a count of the scripts that they send.
func (b *bed) counted(opts ...core.Option) (*core.Client, *faultproxy.Rule) {
	b.t.Helper()
	proxy, rdb := faultproxy.Around(b.t, b.Client)
	return locksOn(b.t, rdb, slices.Concat(b.opts, opts)...), proxy.Watch(scripts)
}

var scripts = faultproxy.Command("evalsha", "eval")

// warm has the server know the scripts, so that counts are not of NOSCRIPT.
func (b *bed) warm(locks *core.Client) {
	b.t.Helper()
	if err := locks.Lock("warm").Do(context.Background(), func(context.Context) error { return nil }); err != nil {
		b.t.Fatal(err)
	}
}

// acquired is an Acquire that must succeed.
func acquired(t *testing.T, ctx context.Context, l core.Lock, opts ...core.AcquireOption) (context.Context, *core.Hold) {
	t.Helper()
	ctx, hold, err := l.Acquire(ctx, opts...)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return ctx, hold
}

// released is a Release that must succeed.
func released(t *testing.T, h *core.Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Errorf("release of %s: %v", h.Key(), err)
	}
}

// wantErr wants err to match every sentinel, and to say once in each line whose error it is.
func wantErr(t *testing.T, err error, sentinels ...error) {
	t.Helper()
	for line := range strings.Lines(fmt.Sprint(err)) {
		if strings.Count(line, "core: ") > 1 {
			t.Errorf("says twice whose error it is: %s", line)
		}
	}
	for _, want := range sentinels {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want a match of %q", err, want)
		}
	}
}

// wantEnded wants ctx to have ended with cause.
func wantEnded(t *testing.T, ctx context.Context, cause error) {
	t.Helper()
	if ctx.Err() == nil {
		t.Errorf("the context has not ended, want cause %q", cause)
		return
	}
	wantErr(t, context.Cause(ctx), cause)
}

func wantAlive(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := ctx.Err(); err != nil {
		t.Errorf("the context has ended: %v, cause %v", err, context.Cause(ctx))
	}
}

// wantHolders compares the lock's hash in Redis.
func (b *bed) wantHolders(key string, want map[string]string) {
	b.t.Helper()
	if got := b.HGetAll(context.Background(), key).Val(); !maps.Equal(got, want) {
		b.t.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

// wantCount wants one holder with this hold count; 0 is a free lock.
func (b *bed) wantCount(h *core.Hold, count string) {
	b.t.Helper()
	b.wantHolders(h.Key(), map[string]string{h.Field(): count})
}

func (b *bed) wantGone(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		if b.Exists(context.Background(), key).Val() != 0 {
			b.t.Errorf("%s is still there: %v", key, b.HGetAll(context.Background(), key).Val())
		}
	}
}

// wantTTL wants a TTL in (low, high].
func (b *bed) wantTTL(key string, low, high time.Duration) {
	b.t.Helper()
	if got := b.PTTL(context.Background(), key).Val(); got <= low || got > high {
		b.t.Errorf("PTTL %s: got %s, want over %s up to %s", key, got, low, high)
	}
}

// stranger is a holder of a Redisson client somewhere else.
const stranger = "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:57"

// take writes a lock by hand in Redisson's layout.
func (b *bed) take(key, field string, lease time.Duration) {
	b.t.Helper()
	_, err := b.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.Del(context.Background(), key)
		p.HSet(context.Background(), key, field, 1)
		p.PExpire(context.Background(), key, lease)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// free releases a lock by hand as Redisson does.
func (b *bed) free(key string) {
	b.t.Helper()
	err := b.Eval(context.Background(), `redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], '0'); return 1`,
		[]string{key, channelOf(key)}).Err()
	if err != nil {
		b.t.Fatal(err)
	}
}

func channelOf(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// eventually polls until ok. The bound is for a test that fails: no timing is
// asserted by it.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(hangs)
	for !ok() {
		if <-tick.C; time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// collected polls until ok, and has the garbage collected before it looks: seldom, since a
// collection takes all processors from the tests beside this one.
func collected(t *testing.T, what string, ok func() bool) {
	t.Helper()
	var next time.Time
	eventually(t, what, func() bool {
		if time.Now().Before(next) {
			return false
		}
		runtime.GC()
		next = time.Now().Add(50 * time.Millisecond)
		return ok()
	})
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

// waiters waits until n callers are queued in the client.
func waiters(t *testing.T, locks *core.Client, n int) {
	t.Helper()
	eventually(t, "the expected number of waiters", func() bool { return locks.Stats().Waiters == n })
}

// listeners waits until n clients listen for the wake-ups of key.
func (b *bed) listeners(key string, n int64) {
	b.t.Helper()
	channel := channelOf(key)
	eventually(b.t, "the expected number of subscribers", func() bool {
		return b.PubSubNumSub(context.Background(), channel).Val()[channel] >= n
	})
}

// eachOf runs n calls at once and waits for them.
func eachOf(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}
