package core_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

func TestWire_HolderFieldIsUUIDAndNumber(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.Lock("order:42"))
		form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+$`)
		if !form.MatchString(hold.Field()) || hold.Field()[:36] != locks.ID() {
			t.Errorf("field: got %q, want %s:<n>", hold.Field(), locks.ID())
		}
		b.wantCount(hold, "1")
		b.wantTTL("order:42", 25*time.Second, 30*time.Second)
		released(t, hold)
		b.wantGone("order:42")
	})
}

func TestWire_CountIsTwoWhileReentered(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("order:42")
		ctx, outer := acquired(t, t.Context(), l)
		_, inner := acquired(t, ctx, l)
		b.wantCount(outer, "2")
		released(t, inner)
		b.wantCount(outer, "1")
		released(t, outer)
		b.wantGone("order:42")
	})
}

func TestWire_FieldIsFreshForEveryAcquisition(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		seen := make(map[string]bool)
		for range 5 {
			_, hold := acquired(t, t.Context(), l)
			seen[hold.Field()] = true
			released(t, hold)
		}
		if len(seen) != 5 {
			t.Errorf("got %d fields in 5 acquisitions", len(seen))
		}
	})
}

func TestWire_PrefixIsPartOfKeyAndChannel(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		sub := b.subscribe(t, "redisson_lock__channel:{shop:order:42}")
		_, hold := acquired(t, t.Context(), b.locks(core.WithPrefix("shop:")).Lock("order:42"))
		if hold.Key() != "shop:order:42" {
			t.Errorf("key: got %q", hold.Key())
		}
		b.wantCount(hold, "1")
		released(t, hold)
		sub.want("0")
	})
}

func TestWire_UnlockPublishesZeroOnTheChannel(t *testing.T) {
	t.Parallel()
	for key, channel := range map[string]string{
		"order:42":   "redisson_lock__channel:{order:42}",
		"order:{42}": "redisson_lock__channel:order:{42}",
	} {
		parallelBeds(t, key, func(t *testing.T, b *bed) {
			l := b.locks().Lock(key)
			sub := b.subscribe(t, channel)
			ctx, outer := acquired(t, t.Context(), l)
			_, inner := acquired(t, ctx, l)
			released(t, inner) // a partial release publishes nothing
			released(t, outer)
			b.Publish(t.Context(), channel, "end")
			sub.want("0", "end")
		})
	}
}

func TestWire_ForeignHolderIsRespectedAndNamed(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		_, hold, err := b.locks().Lock("k").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		if hold != nil {
			t.Error("got a hold")
		}
		if e := notAcquired(t, err); e.BlockedBy != stranger || e.RetryAfter <= 50*time.Second || e.RetryAfter > time.Minute {
			t.Errorf("got %+v, want blocked by the stranger for about a minute", e)
		}
		b.wantHolders("k", map[string]string{stranger: "1"})
		b.wantTTL("k", 50*time.Second, time.Minute)
	})
}

// The bound is far below the poll interval: it was the message.
func TestWire_ForeignUnlockWakesAWaiter(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		const rounds = 5
		best := time.Hour
		for range rounds {
			b.take("k", stranger, time.Minute)
			got := make(chan time.Time, 1)
			go func() {
				_ = locks.Lock("k").Do(t.Context(), func(context.Context) error {
					got <- time.Now()
					return nil
				})
			}()
			waiters(t, locks, 1)
			b.listeners("k", 1)
			freed := time.Now()
			b.free("k")
			best = min(best, (<-got).Sub(freed))
			eventually(t, "the lock to be free", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
		}
		if best > measured(50*time.Millisecond) {
			t.Errorf("woken %s after the unlock, want 50ms at most", best)
		}
	})
}

// A waiter that speaks Redisson's protocol by hand (subscribe, attempt, wait for a
// message) beside 32 local callers who never leave the lock alone. Only the turns that
// it had to wait for count, and only half of them: a loaded machine may stop anybody for
// longer. What a single wait may be is tested where time is not that of a machine
// (TestTurns_RedissonHasItsShare).
func TestWire_RedissonWaiterBesideLocalOnesGetsItsTurn(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks := b.locks()
	ctx, stop := context.WithCancel(t.Context())
	done := busyCallers(ctx, locks, "k", 32)
	waiters(t, locks, 31)

	waits := make([]time.Duration, 0, 20)
	for len(waits) < cap(waits) {
		if waited := b.redissonTurn(t, "k"); waited > 0 {
			waits = append(waits, waited)
		}
	}
	stop()
	<-done
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > measured(50*time.Millisecond) {
		t.Errorf("half of the waits took over %s: %v", median, waits)
	}
}

// busyCallers has n callers take the lock again and again until ctx ends.
func busyCallers(ctx context.Context, locks *core.Client, name string, n int) (done <-chan struct{}) {
	ended := make(chan struct{}, n)
	all := make(chan struct{})
	for range n {
		go func() {
			for ctx.Err() == nil {
				_ = locks.Lock(name).Do(ctx, func(context.Context) error { return nil })
			}
			ended <- struct{}{}
		}()
	}
	go func() {
		for range n {
			<-ended
		}
		close(all)
	}()
	return all
}

// redissonTurn takes and frees the lock once as Redisson's RLock does, and says how
// long the wait was; 0 if the first try took it.
func (b *bed) redissonTurn(t *testing.T, key string) time.Duration {
	t.Helper()
	start := time.Now()
	if b.redissonTry(t, key) {
		b.free(key)
		return 0
	}
	sub := b.subscribe(t, channelOf(key))
	defer sub.Close()
	for !b.redissonTry(t, key) {
		if _, err := sub.ReceiveTimeout(t.Context(), hangs); err != nil {
			t.Fatalf("no message: %v", err)
		}
	}
	waited := time.Since(start)
	b.free(key)
	return waited
}

// redissonTryLock is RLock's tryLockInner: nil when the lock is taken now, else the TTL in
// the way. ARGV is the lease in ms and the thread's field.
const redissonTryLock = `
	if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
		redis.call('hincrby', KEYS[1], ARGV[2], 1)
		redis.call('pexpire', KEYS[1], ARGV[1])
		return nil
	end
	return redis.call('pttl', KEYS[1])`

// redissonTry is one attempt of RLock: re-entrant, count by count.
func (b *bed) redissonTry(t *testing.T, key string) bool {
	t.Helper()
	err := b.Eval(t.Context(), redissonTryLock, []string{key}, 30_000, stranger).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return errors.Is(err, redis.Nil)
}

// channelReader reads one channel.
type channelReader struct {
	*redis.PubSub

	t *testing.T
}

// subscribe returns when the server has confirmed.
func (b *bed) subscribe(t *testing.T, channel string) *channelReader {
	t.Helper()
	sub := b.Client.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &channelReader{PubSub: sub, t: t}
}

// want wants these to be the next messages.
func (r *channelReader) want(payloads ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), hangs)
	defer cancel()
	for _, want := range payloads {
		m, err := r.ReceiveMessage(ctx)
		if err != nil {
			r.t.Fatalf("message %q: %v", want, err)
		}
		if m.Payload != want {
			r.t.Errorf("message: got %q, want %q", m.Payload, want)
		}
	}
}
