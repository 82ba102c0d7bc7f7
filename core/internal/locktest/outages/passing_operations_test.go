package outages_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// passingReplies are the answers of servers and proxies that cannot serve now.
var passingReplies = []string{
	"LOADING Redis is loading the dataset in memory",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"READONLY You can't write against a read only replica.",
	"ERR Error running script (call to f_41969ff2670752e60c30ec3401e1e16ca1d1c6f6): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
	"MISCONF Errors writing to the AOF file: No space left on device",
	"ERR Error running script (call to f_41969ff2670752e60c30ec3401e1e16ca1d1c6f6): @user_script:1: @user_script: 1: -MISCONF Errors writing to the AOF file: Input/output error",
	"NOREPLICAS Not enough good replicas to write.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"CLUSTERDOWN The cluster is down",
	"ERR max number of clients reached",
	"no upstream host",
	"upstream failure", // the script may have been executed
}

// operation is an operation of a caller that changes something in Redis.
type operation struct {
	begin      func(t *testing.T, o *operationKey) (do func() error)
	done       func(o *operationKey) bool // the operation was executed once
	untouched  func(o *operationKey) bool // the operation was not executed
	waits      bool                       // it has a long wait time
	background bool                       // it goes on after an error
	whatever   bool                       // it goes on even after a permanent refusal
	onlyOnce   bool                       // it is not sent again when it may have been executed: another client may hold the lock then
}

// operationKey is the key of one operation, with its lock client and its hold.
type operationKey struct {
	*locktest.Redis

	locks *core.Client
	key   string
	hold  *core.Hold
	field string // of the hold
}

func (o *operationKey) text() string { return o.Get(context.Background(), o.key).Val() }

func is(count string) func(o *operationKey) bool {
	return func(o *operationKey) bool { return o.text() == count }
}

func (o *operationKey) there() bool { return o.Exists(context.Background(), o.key).Val() == 1 }

func (o *operationKey) gone() bool { return !o.there() }

func (o *operationKey) ttl() time.Duration { return o.PTTL(context.Background(), o.key).Val() }

func (o *operationKey) holder() string {
	return strings.Join(o.HKeys(context.Background(), o.key).Val(), " ")
}

// take takes the lock for an hour.
func (o *operationKey) take(t *testing.T) *core.Hold {
	t.Helper()
	_, o.hold = locktest.MustAcquire(t, t.Context(), o.locks.Lock(o.key), core.LeaseTime(time.Hour))
	o.field = o.HKeys(t.Context(), o.key).Val()[0]
	return o.hold
}

// operations returns all operations that change something in Redis.
func operations() map[string]operation {
	number := func(before, after string, do func(ctx context.Context, o *operationKey) error) operation {
		return operation{
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				if before != "" {
					locktest.Must(t, o.Set(t.Context(), o.key, before, 0).Err())
				}
				return func() error { return do(t.Context(), o) }
			},
			done: is(after), untouched: is(before), background: true,
		}
	}
	held := func(of operation, do func(ctx context.Context, o *operationKey) error) operation {
		of.begin = func(t *testing.T, o *operationKey) func() error {
			t.Helper()
			o.take(t)
			return func() error { return do(t.Context(), o) }
		}
		return of
	}
	return map[string]operation{
		"PlainSemaphore.Release": number("5", "8", func(ctx context.Context, o *operationKey) error { return o.locks.PlainSemaphore(o.key).Release(ctx, 3) }),
		"PlainSemaphore.AddPermits": number("5", "2", func(ctx context.Context, o *operationKey) error {
			return o.locks.PlainSemaphore(o.key).AddPermits(ctx, -3)
		}),
		"PlainSemaphore.TrySetPermits": number("", "7", func(ctx context.Context, o *operationKey) error {
			_, err := o.locks.PlainSemaphore(o.key).TrySetPermits(ctx, 7)
			return err
		}),
		"Semaphore.SetPermits": number("", "7", func(ctx context.Context, o *operationKey) error {
			return o.locks.Semaphore(o.key, 0).SetPermits(ctx, 7)
		}),
		"Semaphore.AddPermits": number("5", "8", func(ctx context.Context, o *operationKey) error {
			return o.locks.Semaphore(o.key, 0).AddPermits(ctx, 3)
		}),
		"CountDownLatch.CountDown": number("2", "1", func(ctx context.Context, o *operationKey) error { return o.locks.CountDownLatch(o.key).CountDown(ctx) }),
		"CountDownLatch.CountDown to zero": number("1", "", func(ctx context.Context, o *operationKey) error {
			return o.locks.CountDownLatch(o.key).CountDown(ctx)
		}),
		"CountDownLatch.TrySetCount": number("", "7", func(ctx context.Context, o *operationKey) error {
			_, err := o.locks.CountDownLatch(o.key).TrySetCount(ctx, 7)
			return err
		}),
		"PlainSemaphore.Acquire": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				locktest.Must(t, o.Set(t.Context(), o.key, "5", 0).Err())
				return func() error { return o.locks.PlainSemaphore(o.key).Acquire(t.Context(), 2, core.WaitTime(time.Minute)) }
			},
			done: is("3"), untouched: is("5"), waits: true,
		},
		"Lock.Acquire": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				return func() (err error) {
					_, o.hold, err = o.locks.Lock(o.key).Acquire(t.Context(), core.WaitTime(time.Minute), core.LeaseTime(time.Hour))
					return err
				}
			},
			done: func(o *operationKey) bool { return o.holder() == o.hold.Field() }, untouched: (*operationKey).gone, waits: true,
		},
		"MultiLock.Acquire": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				return func() (err error) {
					_, o.hold, err = o.locks.MultiLock(o.key, o.key+"b").Acquire(t.Context(), core.WaitTime(time.Minute), core.LeaseTime(time.Hour))
					return err
				}
			},
			done: func(o *operationKey) bool { return o.holder() == o.hold.Field() }, untouched: (*operationKey).gone, waits: true,
		},
		"Hold.Release": held(operation{done: (*operationKey).gone, background: true, whatever: true},
			func(ctx context.Context, o *operationKey) error { return o.hold.Release(ctx) }),
		"Hold.Release to a waiter": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				first := o.take(t)
				waiting := locktest.GoAcquire(t.Context(), o.locks.Lock(o.key), core.LeaseTime(time.Hour))
				locktest.Pass(time.Second)
				return func() error {
					err := first.Release(t.Context())
					go func() { o.hold = (<-waiting).Hold }()
					return err
				}
			},
			done: func(o *operationKey) bool { return o.holder() == o.hold.Field() }, background: true, whatever: true,
		},
		"Hold.Release of an inner hold": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				ctx, _ := locktest.MustAcquire(t, t.Context(), o.locks.Lock(o.key), core.LeaseTime(time.Hour))
				_, o.hold = locktest.MustAcquire(t, ctx, o.locks.Lock(o.key), core.LeaseTime(time.Hour))
				return func() error { return o.hold.Release(t.Context()) }
			},
			done: func(o *operationKey) bool {
				return o.HGet(context.Background(), o.key, o.hold.Field()).Val() == "1"
			},
			untouched: func(o *operationKey) bool { // the outer release frees the lock with any count
				return o.HGet(context.Background(), o.key, o.hold.Field()).Val() == "2"
			},
			background: true,
		},
		"Hold.Refresh": held(operation{
			done:      func(o *operationKey) bool { return o.ttl() > 90*time.Minute },
			untouched: func(o *operationKey) bool { return o.ttl() < time.Hour && o.holder() == o.hold.Field() },
		}, func(ctx context.Context, o *operationKey) error { return o.hold.Refresh(ctx, 2*time.Hour) }),
		"Hold.Leave": held(operation{
			done:      func(o *operationKey) bool { return o.ttl() > 90*time.Minute && o.holder() != o.hold.Field() },
			untouched: func(o *operationKey) bool { return o.ttl() < time.Hour && o.holder() == o.hold.Field() },
		}, func(ctx context.Context, o *operationKey) error { return o.hold.Leave(ctx, 2*time.Hour) }),
		"Lock.ForceRelease": held(operation{done: (*operationKey).gone, untouched: (*operationKey).there, onlyOnce: true}, func(ctx context.Context, o *operationKey) error {
			_, err := o.locks.Lock(o.key).ForceRelease(ctx)
			return err
		}),
		"Client.Evict": held(operation{done: (*operationKey).gone, untouched: (*operationKey).there, onlyOnce: true}, func(ctx context.Context, o *operationKey) error {
			_, err := o.locks.Evict(ctx, o.key, o.field)
			return err
		}),
		"CountDownLatch.Delete": {
			begin: func(t *testing.T, o *operationKey) func() error {
				t.Helper()
				locktest.Must(t, o.Set(t.Context(), o.key, "5", 0).Err())
				return func() error {
					_, err := o.locks.CountDownLatch(o.key).Delete(t.Context())
					return err
				}
			},
			done: (*operationKey).gone, untouched: is("5"), onlyOnce: true,
		},
	}
}

// refusedOperation is an operation that was refused for a while, and its error.
type refusedOperation struct {
	*operationKey
	operation

	name string
	err  error
}

// refuse makes Redis refuse the scripts of all operations for some time. It returns their results a minute later.
func refuse(t *testing.T, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy, says string, lasts time.Duration) (all []*refusedOperation) {
	t.Helper()
	var begun sync.WaitGroup
	var start []func()
	for name, op := range operations() {
		one := &refusedOperation{operationKey: &operationKey{Redis: b, locks: locks, key: strings.ReplaceAll(name+lasts.String(), " ", "_")}, operation: op, name: name}
		do := op.begin(t, one.operationKey)
		start = append(start, func() { one.err = do() })
		all = append(all, one)
	}
	rule := proxy.AnswerError(locktest.Scripts, says)
	for _, do := range start {
		begun.Go(do)
	}
	locktest.Pass(lasts)
	rule.Remove()
	begun.Wait()
	locktest.Pass(time.Minute)
	return all
}

// If a refusal passes, the operation is executed once within the time of its call, or later in the background. Other
// operations are not executed after they have returned an error.
func TestPassing_EveryOperation(t *testing.T) {
	t.Parallel()
	for _, says := range passingReplies {
		locktest.ParallelBubble(t, says, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			unknown := strings.HasPrefix(says, "upstream") // as if Redis did not answer
			for _, one := range refuse(t, b, locks, proxy, says, 300*time.Millisecond) {
				if unknown && one.onlyOnce {
					locktest.WantErr(t, one.err, core.ErrUnavailable)
				} else if one.err != nil || !one.done(one.operationKey) {
					t.Errorf("%s, refused for a moment: %v, %s", one.name, one.err, one.seen())
				}
			}
			for _, one := range refuse(t, b, locks, proxy, says, 5*time.Second) {
				switch {
				case one.waits && !unknown:
					if one.err != nil || !one.done(one.operationKey) {
						t.Errorf("%s, refused within its wait time: %v, %s", one.name, one.err, one.seen())
					}
				case one.err == nil || !strings.Contains(one.err.Error(), says):
					t.Errorf("%s, refused for long: %v, want the cause", one.name, one.err)
				case one.background:
					if !one.done(one.operationKey) {
						t.Errorf("%s was not executed exactly once in the background: %v, %s", one.name, one.err, one.seen())
					}
				case !one.untouched(one.operationKey):
					t.Errorf("%s was executed after its error: %v, %s", one.name, one.err, one.seen())
				}
			}
		})
	}
}

// seen describes the keys in Redis at the end.
func (s *refusedOperation) seen() string {
	return fmt.Sprintf("key %s: %q, holder %q, TTL %s", s.key, s.text(), s.holder(), s.ttl())
}

// An operation that Redis refuses permanently fails at once, and its error says that the refusal is permanent. An
// operation on a count is not executed later.
func TestPassing_PermanentRefusal(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"ERR unknown command 'evalsha', with args beginning with: ",
		"ERR illegal address: 172.16.0.1:39136",
	} {
		locktest.ParallelBubble(t, says, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			for _, one := range refuse(t, b, locks, proxy, says, 5*time.Second) {
				const does = "redis refuses this until its data or its configuration is changed"
				if one.err == nil || !strings.Contains(one.err.Error(), does) || !strings.Contains(one.err.Error(), says) {
					t.Errorf("%s: %v, want a permanent refusal with its cause", one.name, one.err)
				}
				if one.whatever {
					if !one.done(one.operationKey) {
						t.Errorf("%s does not go on: %s", one.name, one.seen())
					}
				} else if !one.untouched(one.operationKey) {
					t.Errorf("%s was executed after its error: %v, %s", one.name, one.err, one.seen())
				}
			}
		})
	}
}

// A Redlock waits within its wait time until a majority of its servers can serve again.
func TestPassing_MajorityOfARedlock(t *testing.T) {
	t.Parallel()
	for _, says := range passingReplies {
		if strings.HasPrefix(says, "upstream") {
			continue // like a server that does not answer
		}
		locktest.ParallelBubbleOf(t, says, 3, func(t *testing.T, servers []*locktest.Redis) {
			clients := locktest.BehindEach(t, servers)
			_, warm := locktest.MustAcquire(t, t.Context(), core.Redlock("warm", clients...))
			locktest.MustRelease(t, warm)
			var rules []*faultproxy.Rule
			for _, s := range servers[:2] {
				rules = append(rules, s.Proxy.AnswerError(locktest.Scripts, says))
			}
			_, _, err := core.Redlock("k", clients...).Acquire(t.Context(), core.WaitTime(0))
			locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
			got := locktest.GoAcquire(t.Context(), core.Redlock("k", clients...), core.WaitTime(time.Minute))
			locktest.Pass(10 * time.Second)
			for _, rule := range rules {
				rule.Remove()
			}
			locktest.MustRelease(t, locktest.Got(t, got).Hold)
			locktest.WantNowhere(t, servers, "k")
		})
	}
}

// The first operation of a client goes on in the background even if its Cluster cannot be reached.
func TestPassing_ClusterIsNotReachedYet(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	var reached atomic.Bool
	opts := *cluster.Client().Options()
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !reached.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	rdb := redis.NewClusterClient(&opts)
	defer func() { _ = rdb.Close() }()
	err := locktest.NewClient(t, rdb, core.WithBackendTimeout(time.Second)).PlainSemaphore("pool").Release(t.Context(), 3)
	locktest.WantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "goes on in the background") {
		t.Errorf("%v does not say that it goes on", err)
	}
	reached.Store(true)
	locktest.Eventually(t, "the permits", func() bool { return cluster.Client().Get(t.Context(), "pool").Val() == "3" })
}
