package reaper_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a reaper with a Redis in memory. It records the notifications of the reaper.
type bed struct {
	*reaper.Reaper
	*redis

	t       *testing.T
	end     context.CancelFunc
	workers sync.WaitGroup
	cleared []string
}

// inBubble runs a test with the clock of a bubble.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, redis: newRedis()}
		life, end := context.WithCancel(context.Background())
		b.end = end
		b.Reaper = reaper.New(reaper.Config{
			Redis:   b.redis,
			Silent:  b.isSilent,
			Cleared: b.hasCleared,
			Spawn: func(work func(ctx context.Context)) {
				if life.Err() == nil {
					b.workers.Go(func() { work(life) })
				}
			},
		})
		defer b.workers.Wait()
		defer end()
		test(t, b)
	})
}

func (b *bed) hasCleared(key string) {
	_ = b.Kept() // the reaper calls it without its mutex
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleared = append(b.cleared, key)
}

// abandon leaves a field to the reaper without a pending call.
func (b *bed) abandon(field string, keys ...string) {
	b.Abandon(nil, keys, field, nil, 10*time.Second)
}

func (b *bed) wantCleared(want ...string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.cleared, want) {
		b.t.Errorf("cleared: got %q, want %q", b.cleared, want)
	}
}

func (b *bed) wantKept(want string) {
	b.t.Helper()
	synctest.Wait()
	if got := b.Kept(); got != want {
		b.t.Errorf("kept: got %s, want %s", got, want)
	}
}

// redis holds locks in memory and answers the questions about them.
type redis struct {
	mu      sync.Mutex
	most    int                      // the most keys in a question
	takes   time.Duration            // the time until an answer
	locks   map[string][]string      // fields by key
	silent  map[string]bool          // by key
	fails   func(key string) failure // returns the failure of a question that names key; may be nil
	looked  func(key string)         // called when the reaper checks whether a node is silent; may be nil
	asked   []asking
	flying  int
	flyMost int
}

// asking is a question that arrived.
type asking struct {
	at   time.Time
	list []redisstore.Suspicion
}

func (a asking) names(key string) bool {
	return slices.ContainsFunc(a.list, func(s redisstore.Suspicion) bool { return s.Key == key })
}

// failure is the way in which a question fails.
type failure uint8

const (
	fine     failure = iota
	noAnswer         // no answer to the question, which may have been executed
	rejected         // an error for the whole question
	broken           // an error for this key only
)

var errFake = errors.New("no luck")

func newRedis() *redis {
	return &redis{most: 64, locks: map[string][]string{}, silent: map[string]bool{}}
}

func (r *redis) Clears() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

func (r *redis) isSilent(_ context.Context, key string) bool {
	if r.looked != nil {
		r.looked(key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent[key]
}

func (r *redis) Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, wire.Fate, error) {
	r.mu.Lock()
	r.asked = append(r.asked, asking{time.Now(), list})
	r.flying++
	r.flyMost = max(r.flyMost, r.flying)
	takes := r.takes
	r.mu.Unlock()
	wait := time.NewTimer(takes)
	defer wait.Stop()
	var err error
	select {
	case <-wait.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying--
	if err != nil {
		return nil, wire.Unknown, err
	}
	return r.answer(list)
}

func (r *redis) answer(list []redisstore.Suspicion) (found []redisstore.Finding, _ wire.Fate, _ error) {
	for _, s := range list {
		switch r.failure(s.Key) {
		case rejected:
			return nil, wire.Answered, errFake
		case noAnswer:
			return nil, wire.Unknown, errFake
		case broken:
			found = append(found, redisstore.Finding{Err: errFake})
			continue
		case fine:
		}
		found = append(found, redisstore.Finding{Fields: r.locks[s.Key]})
		r.locks[s.Key] = slices.DeleteFunc(slices.Clone(r.locks[s.Key]), func(field string) bool { return slices.Contains(s.Fields, field) })
	}
	return found, wire.Answered, nil
}

func (r *redis) failure(key string) failure {
	if r.fails == nil {
		return fine
	}
	return r.fails(key)
}

// atOnce returns the largest number of questions at a time.
func (r *redis) atOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flyMost
}

// land executes an acquire.
func (r *redis) land(field string, keys ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		r.locks[key] = append(slices.Clone(r.locks[key]), field)
	}
}

func (r *redis) wantLocks(t *testing.T, key string, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.locks[key]; !slices.Equal(got, want) {
		t.Errorf("in %s: got %q, want %q", key, got, want)
	}
}

// questions returns the questions since the last call.
func (r *redis) questions() []asking {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func (r *redis) hush(silent bool, keys ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		r.silent[key] = silent
	}
}

// late is an acquire whose answer is set by the test.
type late struct {
	mu      sync.Mutex
	outcome reaper.Outcome
}

func (l *late) Late() reaper.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outcome
}

func (l *late) comes(outcome reaper.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcome = outcome
}

// pass lets virtual time pass and waits until all due events have happened.
func pass(d time.Duration) {
	time.Sleep(d) // virtual time
	synctest.Wait()
}

func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
