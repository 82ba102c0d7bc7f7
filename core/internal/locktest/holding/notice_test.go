package holding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// noticed returns the keyspace channel of the holders of a lock.
func noticed(kind locktest.Kind, key string) string { return "__keyspace@0__:" + holdersOf(kind, key) }

// holdersOf returns the name of the Redis key that contains the holders of a lock.
func holdersOf(kind locktest.Kind, key string) string {
	if kind.HasPermits {
		return locktest.Tagged(key) + ":timeout"
	}
	return key
}

// withNotifications makes a real server send keyspace notifications.
func withNotifications(t *testing.T, binary redisserver.Binary) *locktest.Redis {
	t.Helper()
	b := locktest.On(t, binary.Start(t))
	locktest.Must(t, b.ConfigSet(t.Context(), "notify-keyspace-events", "Kghzxe").Err())
	return b
}

// taken is a lock that a client holds, with a lease that lasts longer than the test.
type taken struct {
	locktest.Kind

	name  string
	key   string
	ctx   context.Context //nolint:containedctx // of the hold
	hold  *core.Hold
	asked *faultproxy.Rule // counts the scripts of the lock
}

// awaitListening waits until the client has subscribed to the key and has then asked Redis about the lock. So only a later
// message can be the reason of another question.
func (l *taken) awaitListening(t *testing.T) {
	t.Helper()
	locktest.Eventually(t, l.name+" is listened for", func() bool { return l.asked.Hits() > 0 })
}

// A holder learns of the loss of any kind of lock, with a fixed or a renewed lease, long before the next renewal.
func TestLossNotice_EachKind(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		b := withNotifications(t, binary)
		beside := b.Locks()
		locks, proxy := b.BehindAProxy(core.WithLossNotice(), core.WithWatchdog(time.Hour))
		ways := map[string]func(l *taken) error{
			"deleted": func(l *taken) error { return b.Del(t.Context(), holdersOf(l.Kind, l.key)).Err() },
			"unlinked": func(l *taken) error {
				return b.Unlink(t.Context(), holdersOf(l.Kind, l.key)).Err()
			},
			"forced": func(l *taken) error {
				lock := l.On(beside, l.key)
				switch l.Kind.Name { // one key, or one value
				case "multi":
					lock = beside.Lock(l.key)
				case "group":
					lock = beside.GroupLock(l.key, "b")
				}
				_, err := lock.ForceRelease(t.Context())
				return err
			},
			"evicted": func(l *taken) error {
				_, err := beside.Evict(t.Context(), l.key, l.hold.Field())
				return err
			},
			"expired": func(l *taken) error { return b.PExpire(t.Context(), holdersOf(l.Kind, l.key), time.Millisecond).Err() },
		}
		var all []*taken
		var take []func() error
		for _, kind := range locktest.KindsWithHolders() {
			if kind.Nodes > 1 {
				continue
			}
			for way, takeAway := range ways {
				if kind.Name == "group" && way == "evicted" {
					continue // Evict does not know group locks
				}
				for i, opts := range [][]core.AcquireOption{nil, {core.LeaseTime(time.Hour)}} {
					l := &taken{Kind: kind, name: fmt.Sprintf("%s %s %d", kind.Name, way, i), key: fmt.Sprintf("%s-%s-%d", kind.Name, way, i)}
					l.ctx, l.hold = locktest.MustAcquire(t, t.Context(), kind.On(locks, l.key), opts...)
					l.asked = proxy.Watch(faultproxy.All(locktest.Scripts, faultproxy.Containing(holdersOf(kind, l.key))))
					all, take = append(all, l), append(take, func() error { return takeAway(l) })
				}
			}
		}
		for _, l := range all {
			l.awaitListening(t)
		}
		for i := range all {
			locktest.WantOK(t, take[i]())
		}
		for _, l := range all {
			locktest.AwaitEnd(t, l.ctx)
			locktest.WantEnded(t, l.ctx, core.ErrLost)
			locktest.WantErr(t, l.hold.Release(t.Context()), core.ErrLost)
		}
	})
}

// One of several holders is evicted. It learns of that, and the other one keeps the lock.
func TestLossNotice_OneOfSeveralHolders(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		b := withNotifications(t, binary)
		locks, proxy := b.BehindAProxy(core.WithLossNotice(), core.WithWatchdog(time.Hour))
		var all []*taken
		var stay []context.Context
		for _, name := range []string{"read", "permit"} {
			kind, _ := locktest.KindNamed(name)
			lock := locks.ReadLock(name)
			if kind.HasPermits {
				lock = locks.Semaphore(name, 2).Lock
			}
			ctx, _ := locktest.MustAcquire(t, t.Context(), lock)
			l := &taken{Kind: kind, name: name, key: name}
			l.ctx, l.hold = locktest.MustAcquire(t, t.Context(), lock)
			l.asked = proxy.Watch(faultproxy.All(locktest.Scripts, faultproxy.Containing(holdersOf(kind, name))))
			all, stay = append(all, l), append(stay, ctx)
		}
		for i, l := range all {
			l.awaitListening(t)
			_, err := locks.Evict(t.Context(), l.key, l.hold.Field())
			locktest.Must(t, err)
			locktest.AwaitEnd(t, l.ctx)
			locktest.WantEnded(t, l.ctx, core.ErrLost)
			locktest.WantAlive(t, stay[i])
		}
	})
}

// The events of the writes of a holder are those that the client ignores.
func TestLossNotice_EventsOfAHold(t *testing.T) {
	t.Parallel()
	ignored := map[string]bool{"expire": true, "hset": true, "hincrby": true, "zadd": true}
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		b := withNotifications(t, binary)
		locks := b.Locks()
		for _, kind := range locktest.KindsWithHolders() {
			if kind.Nodes > 1 {
				continue
			}
			messages := b.SubscribeTo(t, noticed(kind, kind.Name))
			ctx, hold := locktest.MustAcquire(t, t.Context(), kind.On(locks, kind.Name), core.LeaseTime(time.Hour))
			if kind.IsReentrant {
				_, inner := locktest.MustAcquire(t, ctx, kind.On(locks, kind.Name))
				locktest.Must(t, hold.Refresh(t.Context(), 2*time.Hour))
				locktest.MustRelease(t, inner)
			}
			locktest.Must(t, hold.Refresh(t.Context(), 3*time.Hour))
			locktest.Must(t, b.Del(t.Context(), holdersOf(kind, kind.Name)).Err())
			for n := 0; ; n++ {
				m, err := messages.ReceiveMessage(t.Context())
				locktest.Must(t, err)
				if m.Payload == "del" {
					if n < 2 {
						t.Errorf("%s: %d events before the deletion", kind.Name, n)
					}
					break
				}
				if !ignored[m.Payload] {
					t.Errorf("%s: event %q", kind.Name, m.Payload)
				}
			}
		}
	})
}

// Only an event after which the holder may be gone makes the client ask.
func TestLossNotice_AsksOnlyWhenAHolderMayBeGone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted(core.WithLossNotice())
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		locktest.Pass(5 * time.Second)
		for event, asks := range map[string]int{"expire": 0, "hset": 0, "hincrby": 0, "zadd": 0, "hdel": 1, "zrem": 1, "rename_from": 1} {
			before := sent.Hits()
			locktest.Must(t, b.Publish(t.Context(), "__keyspace@0__:k", event).Err())
			locktest.Pass(time.Second)
			locktest.WantSame(t, "questions after "+event, sent.Hits()-before, asks)
		}
		locktest.WantAlive(t, ctx)
	})
}

// A server that sends no notifications changes nothing: the loss of a renewed lock is found at its renewal.
func TestLossNotice_ServerWithoutNotifications(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted(core.WithLossNotice())
		fixed, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("fixed"), core.LeaseTime(time.Hour))
		renewed, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("renewed"))
		locktest.Pass(5 * time.Second)
		before := sent.Hits()
		locktest.Must(t, b.Del(t.Context(), "fixed", "renewed").Err())
		locktest.Pass(time.Second)
		locktest.WantAlive(t, renewed)
		locktest.WantSame(t, "questions", sent.Hits()-before, 0)
		locktest.Pass(10 * time.Second)
		locktest.WantEnded(t, renewed, core.ErrLost)
		locktest.WantAlive(t, fixed)
	})
}

// The client gets no notification while its connection is lost. It asks when it has another one.
func TestLossNotice_ReconnectAsks(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithLossNotice())
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		locktest.Pass(5 * time.Second)
		proxy.Cut()
		locktest.Must(t, b.Del(t.Context(), "k").Err())
		locktest.Pass(100 * time.Millisecond)
		locktest.WantEnded(t, ctx, core.ErrLost)
	})
}

// Short holds cost no subscription.
func TestLossNotice_ShortHoldsCostNothing(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithLossNotice())
		subscribes := proxy.Watch(faultproxy.Command("subscribe"))
		for i := range 100 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock(fmt.Sprint(i)))
			locktest.Pass(900 * time.Millisecond)
			locktest.MustRelease(t, hold)
		}
		locktest.WantSame(t, "subscriptions", subscribes.Hits(), 0)
	})
}

// The strangers of package redistest send notifications.
func TestLossNotice_OfRedistest(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(b *locktest.Redis){
		"take":   func(b *locktest.Redis) { b.Embedded.Take("k", time.Minute) },
		"free":   func(b *locktest.Redis) { b.Embedded.Free("k") },
		"expire": func(b *locktest.Redis) { b.Embedded.Expire("k") },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			with, without := b.Locks(core.WithLossNotice()), b.Locks()
			for client, ends := range map[*core.Client]bool{with: true, without: false} {
				ctx, _ := locktest.MustAcquire(t, t.Context(), client.Lock("k"), core.LeaseTime(time.Hour))
				locktest.Pass(3 * time.Second)
				takeAway(b)
				locktest.Pass(100 * time.Millisecond)
				locktest.WantSame(t, "ended at once", ctx.Err() != nil, ends)
				locktest.Must(t, b.Del(t.Context(), "k").Err())
			}
		})
	}
}
