package core_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/redis/go-redis/v9"
)

// rig is a real Redis that knows all scripts, with a proxy in front of it.
type rig struct {
	t      *testing.T
	server *redisserver.Server
	direct *redis.Client // beside the proxy
	proxy  *faultproxy.Proxy
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, server: redisserver.Start(t)}
	r.direct = r.server.Client()
	for _, source := range scriptSources(t) {
		must(t, r.direct.ScriptLoad(t.Context(), source).Err())
	}
	r.proxy = faultproxy.New(t, r.server.Addr())
	return r
}

// locks makes a client behind the proxy, with its connections open. It is closed
// with the test, whatever it holds.
func (r *rig) locks(opts ...core.Option) *core.Client {
	r.t.Helper()
	return r.locksWith(nil, opts...)
}

// locksWith is locks with changed options of go-redis.
func (r *rig) locksWith(change func(*redis.Options), opts ...core.Option) *core.Client {
	r.t.Helper()
	o := &redis.Options{Addr: r.proxy.Addr()}
	if change != nil {
		change(o)
	}
	rdb := redis.NewClient(o)
	r.t.Cleanup(func() { _ = rdb.Close() })
	locks := locksOn(r.t, rdb, opts...)
	warm(r.t, locks)
	return locks
}

// beside makes a client that does not pass through the proxy.
func (r *rig) beside() *core.Client {
	r.t.Helper()
	locks := locksOn(r.t, r.server.Client(), patient)
	warm(r.t, locks)
	return locks
}

func (r *rig) exists(key string) bool {
	return r.direct.Exists(context.Background(), key).Val() == 1
}

// freed wants no key left within a second.
func (r *rig) freed(key string) {
	r.t.Helper()
	within(r.t, key+" gone", func() bool { return !r.exists(key) })
}

// gone waits for the end of a lease in Redis.
func (r *rig) gone(key string) {
	r.t.Helper()
	eventually(r.t, key+" gone", func() bool { return !r.exists(key) })
}

// wantHolder wants one holder with count 1.
func (r *rig) wantHolder(key, field string) {
	r.t.Helper()
	got := r.direct.HGetAll(context.Background(), key).Val()
	if want := map[string]string{field: "1"}; !maps.Equal(got, want) {
		r.t.Errorf("redis has %v, want %v", got, want)
	}
}

// steal puts a stranger into the place of whoever holds key.
func (r *rig) steal(key string) { r.t.Helper(); r.take(key, stranger) }

// take writes a holder into Redis, whoever was there.
func (r *rig) take(key, field string) {
	r.t.Helper()
	ctx := context.Background()
	_, err := r.direct.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, key)
		p.HSet(ctx, key, field, 1)
		p.PExpire(ctx, key, time.Hour)
		return nil
	})
	must(r.t, err)
}

// land lets go what rule holds, and waits until Redis has executed it.
func (r *rig) land(rule *faultproxy.Rule) {
	r.t.Helper()
	held := rule.Hits()
	rule.Release()
	eventually(r.t, "what was held to land", func() bool { return rule.Executed() >= held })
}

// outcome is the result of an Acquire in another goroutine.
type outcome struct {
	ctx  context.Context //nolint:containedctx // a result
	hold *core.Hold
	err  error
	took time.Duration
}

// acquiring starts an Acquire.
func acquiring(ctx context.Context, lock core.Lock, opts ...core.AcquireOption) <-chan outcome {
	got := make(chan outcome, 1)
	start := time.Now()
	go func() {
		ctx, hold, err := lock.Acquire(ctx, opts...)
		got <- outcome{ctx, hold, err, time.Since(start)}
	}()
	return got
}

// mustHold waits for an Acquire that must succeed.
func (r *rig) mustHold(got <-chan outcome) outcome {
	r.t.Helper()
	select {
	case o := <-got:
		must(r.t, o.err)
		return o
	case <-time.After(hangs):
		r.t.Fatal("never acquired")
		return outcome{}
	}
}

// awaitEnd waits for the end of a context that must end.
func awaitEnd(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(hangs):
		t.Fatal("the context does not end")
	}
}

// releasing starts a Release.
func releasing(hold *core.Hold) <-chan error {
	done := make(chan error, 1)
	go func() { done <- hold.Release(context.Background()) }()
	return done
}

// script matches the execution of one script, for one key or several: "handoff" of the reentrant lock,
// "fair/acquire" of another kind.
func script(t *testing.T, name string) faultproxy.Match {
	t.Helper()
	sources := scriptSources(t)
	if sources[name] == "" {
		t.Fatalf("there is no script %q", name)
	}
	one, several := digest(sources[name]), digest(sources[name+"_each"])
	return func(cmd []string) bool {
		return faultproxy.Command("EVALSHA")(cmd) && (cmd[1] == one || cmd[1] == several)
	}
}

func digest(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// scriptOn matches the execution of one script on a key.
func scriptOn(t *testing.T, name, key string) faultproxy.Match {
	t.Helper()
	return faultproxy.All(script(t, name), faultproxy.Containing(key))
}

func scriptSources(t *testing.T) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	for i, kind := range redisstore.NewKinds().All() {
		for name, source := range kind.Sources() {
			if i > 0 {
				name = kind.Name + "/" + name
			}
			sources[name] = source
		}
	}
	return sources
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within polls until ok, for at most a second: the time that a failed acquisition
// may leave something behind.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(measured(time.Second)); !ok(); time.Sleep(200 * time.Microsecond) { // a poll with a bound, not a guess
		if time.Now().After(end) {
			t.Errorf("%s: not within a second", what)
			return
		}
	}
}

// timesEnv is 1 where the machine has nothing else to do, so that what is measured on its
// own clock, outside of a bubble, can be told from what a busy one adds.
const timesEnv = "INTERLOCK_TIMES"

// measured is a bound on a time that is measured so: as it is where INTERLOCK_TIMES=1, elsewhere
// with half a minute for whatever else the machine does.
func measured(bound time.Duration) time.Duration {
	if isQuiet() {
		return bound
	}
	return bound + 30*time.Second
}

// unhurried is a lease, or a time that Redis has for an answer, which a test must not miss by
// chance: as it is where INTERLOCK_TIMES=1, elsewhere longer than a busy machine stops a test.
func unhurried(d time.Duration) time.Duration {
	if isQuiet() {
		return d
	}
	return d + 8*time.Second
}

func isQuiet() bool { return os.Getenv(timesEnv) == "1" }

// hangs is after what time a test is taken to hang. It says nothing about how long anything may take.
const hangs = 5 * time.Minute

// slack is what a machine adds to a bound on time though it does nothing else.
const slack = 2 * time.Second

// wantAtMost wants something to have taken no longer than a bound, and slack.
func wantAtMost(t *testing.T, what string, took, bound time.Duration) {
	t.Helper()
	if took > measured(bound+slack) {
		t.Errorf("%s took %s, want at most %s", what, took, bound)
	}
}

// wantOnly wants err to match one sentinel, and none of the others.
func wantOnly(t *testing.T, err, want error, others ...error) {
	t.Helper()
	wantErr(t, err, want)
	for _, other := range others {
		if errors.Is(err, other) {
			t.Errorf("%v matches %q too", err, other)
		}
	}
}

// patient keeps a busy machine from looking like a Redis that is down.
var patient = core.WithBackendTimeout(10 * time.Second)

// faultClose closes a client whose holds have all been released.
func faultClose(t *testing.T, locks *core.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	wantOK(t, locks.Close(ctx))
}
