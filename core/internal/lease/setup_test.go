package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The configuration of the watchdog in tests.
const (
	ttl     = 30 * time.Second
	timeout = 5 * time.Second
	landing = 2 * time.Minute
)

var (
	errOver = errors.New("over")
	errGone = errors.New("gone")

	errNoAnswer = errors.New("no answer")
	errRefused  = refusal("OOM")
)

// refusal is an error reply of Redis.
type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) RedisError() {}

// The verdicts of Redis on a claim.
var (
	there    = redisstore.Verdict{Held: true}
	twice    = redisstore.Verdict{Held: true, Twice: true}
	gone     = redisstore.Verdict{}
	noAnswer = redisstore.Verdict{Err: errNoAnswer}
	refused  = redisstore.Verdict{Err: errRefused}
)

// bed is a running watchdog with a Redis whose answers the tests set.
type bed struct {
	*lease.Watchdog

	t      *testing.T
	start  time.Time
	redis  *redis
	work   sync.WaitGroup
	life   context.Context
	spawns int // number of goroutines so far
	mu     sync.Mutex
}

// inBubble runs a test with a watchdog, which stops at the end of the test.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	inBubbleThen(t, test, func(*testing.T) {})
}

func parallelBubble(t *testing.T, name string, test func(t *testing.T, b *bed)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		inBubble(t, test)
	})
}

// inBubbleThen also calls then after the watchdog has stopped.
func inBubbleThen(t *testing.T, test func(t *testing.T, b *bed), then func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(context.Background())
		b := &bed{t: t, start: time.Now(), redis: &redis{says: make(map[string]redisstore.Verdict), takes: make(map[string]time.Duration)}, life: life}
		b.Watchdog = lease.NewWatchdog(lease.Config{
			Start: b.start, TTL: ttl, Timeout: timeout, Landing: landing,
			Renewer: b.redis, Spawn: b.spawn, Over: errOver, Gone: errGone,
		})
		b.spawn(b.Run)
		test(t, b)
		end()
		b.work.Wait()
		then(t)
	})
}

func (b *bed) spawn(work func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spawns++
	b.work.Go(func() { work(b.life) })
}

func (b *bed) spawned() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spawns
}

// held returns a watched lease that Redis has just granted.
func (b *bed) held(key string, ttl time.Duration) *holding {
	h := b.opened(key, ttl)
	h.Watch(time.Now())
	return h
}

// renewed returns a renewed lease with the watchdog's TTL.
func (b *bed) renewed(key string) *holding {
	h := b.opened(key, ttl)
	h.Renew(time.Now())
	return h
}

func (b *bed) opened(key string, ttl time.Duration) *holding {
	return b.openedAs(nil, key, ttl)
}

func (b *bed) openedAs(kind *redisstore.Kind, key string, ttl time.Duration) *holding {
	h := &holding{}
	b.Open(&h.Lease, redisstore.Claim{Kind: kind, Key: key, Field: "f"}, h, time.Now(), ttl)
	return h
}

// holding is a holder with its lease.
type holding struct {
	lease.Lease

	mu      sync.Mutex
	losses  []loss
	reports []report
	slow    time.Duration // the time that its methods take
}

type loss struct {
	cause error
	at    time.Time
}

type report struct {
	err  error
	late time.Duration
	at   time.Time
}

func (h *holding) Lost(cause error) {
	h.mu.Lock()
	h.losses = append(h.losses, loss{cause, time.Now()})
	h.mu.Unlock()
	time.Sleep(h.slow) // virtual time
}

func (h *holding) Renewed(err error, late time.Duration) {
	h.mu.Lock()
	h.reports = append(h.reports, report{err, late, time.Now()})
	h.mu.Unlock()
	time.Sleep(h.slow) // virtual time
}

func (h *holding) lost() []loss {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]loss(nil), h.losses...)
}

func (h *holding) renewals() []report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]report(nil), h.reports...)
}

// redis is the Renewer of a test. The node of a key is the part before the slash.
type redis struct {
	mu     sync.Mutex
	says   map[string]redisstore.Verdict // by key; held by default
	takes  map[string]time.Duration      // the time until the answer, by node
	naming time.Duration                 // the time that NodeName takes
	asked  []call
}

// call is one renewal of, or one question about, several claims.
type call struct {
	at   time.Time
	keys []string
	kind *redisstore.Kind // kind of all claims
	ttl  time.Duration
}

func (r *redis) NodeName(_ context.Context, key string) string {
	r.mu.Lock()
	naming := r.naming
	r.mu.Unlock()
	time.Sleep(naming) // virtual time
	return node(key)
}

func node(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}

func (r *redis) Renew(ctx context.Context, claims []redisstore.Claim, ttl time.Duration) []redisstore.Verdict {
	c := call{at: time.Now(), ttl: ttl}
	for _, claim := range claims {
		c.keys = append(c.keys, claim.Key)
		if c.kind = claim.Kind; c.kind != claims[0].Kind {
			panic("one call for two kinds")
		}
	}
	r.mu.Lock()
	r.asked = append(r.asked, c)
	takes := r.takes[node(claims[0].Key)]
	r.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return answers(claims, func(string) redisstore.Verdict { return redisstore.Verdict{Err: ctx.Err()} })
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return answers(claims, func(key string) redisstore.Verdict {
		if v, ok := r.says[key]; ok {
			return v
		}
		return there
	})
}

func answers(claims []redisstore.Claim, verdictOn func(key string) redisstore.Verdict) []redisstore.Verdict {
	verdicts := make([]redisstore.Verdict, len(claims))
	for i, c := range claims {
		verdicts[i] = verdictOn(c.Key)
	}
	return verdicts
}

// say sets the verdict on a key from now on.
func (r *redis) say(key string, v redisstore.Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says[key] = v
}

// delay sets how long a node takes to answer from now on.
func (r *redis) delay(node string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes[node] = d
}

// nameIn sets how long NodeName takes from now on.
func (r *redis) nameIn(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.naming = d
}

// calls returns the renewals and questions since it was last called.
func (r *redis) calls() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.asked
	r.asked = nil
	return calls
}

// pass lets time pass and waits until everything that is due has happened.
func pass(d time.Duration) {
	time.Sleep(d) // virtual time
	synctest.Wait()
}

// after returns the virtual time in d, for comparisons.
func after(d time.Duration) time.Time { return time.Now().Add(d) }

func wantHeld(t *testing.T, h *holding) {
	t.Helper()
	if err := h.Loss(); !h.Held() || err != nil || len(h.lost()) > 0 {
		t.Errorf("%s: held %v, loss %v, lost for %v", h.Key, h.Held(), err, h.lost())
	}
}

// wantLost checks that exactly one loss was reported.
func wantLost(t *testing.T, h *holding, cause error) {
	t.Helper()
	if h.Held() || !errors.Is(h.Loss(), cause) {
		t.Errorf("%s: held %v, loss %v, want %v", h.Key, h.Held(), h.Loss(), cause)
	}
	if reports := h.lost(); len(reports) != 1 || !errors.Is(reports[0].cause, cause) {
		t.Errorf("%s: lost for %v, want %v once", h.Key, reports, cause)
	}
}

func wantLeft(t *testing.T, h *holding, want time.Duration) {
	t.Helper()
	if got := h.Left(time.Now()); got != want {
		t.Errorf("%s: %s are left, want %s", h.Key, got, want)
	}
}

// margin returns the time between the deadline of a holder and the end of its lease.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+2*time.Millisecond, ttl/2)
}

func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
