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

// What the watchdog of a test is given.
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

// refusal is an answer of Redis that is an error.
type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) RedisError() {}

// What Redis says of a claim.
var (
	there    = redisstore.Verdict{Held: true}
	twice    = redisstore.Verdict{Held: true, Twice: true}
	gone     = redisstore.Verdict{}
	noAnswer = redisstore.Verdict{Err: errNoAnswer}
	refused  = redisstore.Verdict{Err: errRefused}
)

// bed is a watchdog that runs, with a Redis of which tests say what it answers.
type bed struct {
	*lease.Watchdog

	t      *testing.T
	start  time.Time
	redis  *redis
	work   sync.WaitGroup
	life   context.Context
	spawns int // goroutines, so far
	mu     sync.Mutex
}

// inBubble runs a test with a watchdog, which ends with the test.
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

// inBubbleThen looks also at what is left then.
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

// held is a lease that Redis has just given, and that is watched.
func (b *bed) held(key string, ttl time.Duration) *holding {
	h := b.opened(key, ttl)
	h.Watch(time.Now())
	return h
}

// renewed is a lease of the watchdog's TTL that is renewed.
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
	slow    time.Duration // of its calls
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
	time.Sleep(h.slow) // in the time of the bubble
}

func (h *holding) Renewed(err error, late time.Duration) {
	h.mu.Lock()
	h.reports = append(h.reports, report{err, late, time.Now()})
	h.mu.Unlock()
	time.Sleep(h.slow) // in the time of the bubble
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

// redis is the way to Redis of a test. The node of a key is what stands before the slash.
type redis struct {
	mu     sync.Mutex
	says   map[string]redisstore.Verdict // by key; there, unless said
	takes  map[string]time.Duration      // by node, until the answer
	naming time.Duration                 // until a node is named
	asked  []call
}

// call is one renewal of several claims, or a question.
type call struct {
	at   time.Time
	keys []string
	kind *redisstore.Kind // of all of them
	ttl  time.Duration
}

func (r *redis) NodeName(_ context.Context, key string) string {
	r.mu.Lock()
	naming := r.naming
	r.mu.Unlock()
	time.Sleep(naming) // in the time of the bubble
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

func answers(claims []redisstore.Claim, of func(key string) redisstore.Verdict) []redisstore.Verdict {
	verdicts := make([]redisstore.Verdict, len(claims))
	for i, c := range claims {
		verdicts[i] = of(c.Key)
	}
	return verdicts
}

// say sets what Redis says of a key from now on.
func (r *redis) say(key string, v redisstore.Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says[key] = v
}

// delay sets how long a node takes from now on.
func (r *redis) delay(node string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes[node] = d
}

// nameIn sets how long it takes to name a node from now on.
func (r *redis) nameIn(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.naming = d
}

// calls are the renewals and questions since the last call of this.
func (r *redis) calls() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.asked
	r.asked = nil
	return calls
}

// pass lets time go by, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d) // in the time of the bubble
	synctest.Wait()
}

// after is a time of the bubble to be compared.
func after(d time.Duration) time.Time { return time.Now().Add(d) }

func wantHeld(t *testing.T, h *holding) {
	t.Helper()
	if err := h.Loss(); !h.Held() || err != nil || len(h.lost()) > 0 {
		t.Errorf("%s: held %v, loss %v, lost for %v", h.Key, h.Held(), err, h.lost())
	}
}

// wantLost says that a loss was announced, once.
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

// margin is what a lease is shorter by for its holder.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+2*time.Millisecond, ttl/2)
}

func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
