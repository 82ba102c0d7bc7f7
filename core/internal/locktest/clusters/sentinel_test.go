package clusters_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

func TestSentinel_LockContendFailover(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	locks := locktest.NewClient(t, s.Client(), core.WithBackendTimeout(2*time.Second), core.WithWatchdog(10*time.Second))
	master := s.Master.Client()

	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.WantSame(t, "on the master: count", master.HGet(t.Context(), "k", hold.Field()).Val(), "1")
	_, _, err := locktest.NewClient(t, s.Client(), locktest.Patient).Lock("k").Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	at := locktest.AcquiredAt(t, locks, "k")
	locktest.AwaitWaiters(t, locks, 1)
	locktest.MustRelease(t, hold)
	<-at
	locktest.WantEnded(t, ctx, core.ErrReleased)

	// The master dies. Locks work again without a restart. While no server answers, the error is ErrUnavailable.
	s.Master.Kill()
	_, _, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(400*time.Millisecond))
	if err != nil {
		locktest.WantErr(t, err, core.ErrUnavailable)
	}
	s.AwaitFailover()
	locktest.Eventually(t, "recovery", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(5*time.Second)) == nil
	})
}

// While the Sentinel names the same master, the connections of locks stay. When it names another master, lock
// commands and subscriptions go there, although the old server is alive and still a master.
func TestSentinel_ConnectionsFollowTheName(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	old, next := s.Master.Client(), redisserver.Start(t)
	locks := locktest.NewClient(t, s.Client(), locktest.Patient)
	locktest.Must(t, next.Client().HSet(t.Context(), "contended", locktest.Stranger, 1).Err())
	locktest.Must(t, old.HSet(t.Context(), "contended", locktest.Stranger, 1).Err())
	at := locktest.AcquiredAt(t, locks, "contended")
	listens := func(rdb *redis.Client) bool {
		channel := locktest.ChannelOf("contended")
		return rdb.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
	}
	locktest.Eventually(t, "a subscription", func() bool { return listens(old) })
	use := func() { locktest.Must(t, locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil })) }
	use()

	// On a busy machine the client may open a connection beside one with a slow answer. So only one of several spans
	// has to be without new connections. If no Sentinel confirmed the connections, they would live for 5 s, and each
	// span would have two new ones.
	const span = 12 * time.Second
	locktest.Eventually(t, "a span without new connections", func() bool {
		before := connectionsMade(t, old)
		for start := time.Now(); time.Since(start) < span; {
			use()
		}
		return connectionsMade(t, old) == before
	})

	sentinel := s.Sentinel.Client()
	host, port, err := net.SplitHostPort(next.Addr())
	locktest.Must(t, err)
	locktest.Must(t, sentinel.Do(t.Context(), "sentinel", "remove", redisserver.MasterName).Err())
	locktest.Must(t, sentinel.Do(t.Context(), "sentinel", "monitor", redisserver.MasterName, host, port, 1).Err())
	locktest.Eventually(t, "commands on the new master", func() bool {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		defer hold.Release(t.Context()) // the hold may be on the old master
		return next.Client().Exists(t.Context(), "k").Val() == 1
	})
	locktest.Eventually(t, "the subscription on the new master", func() bool {
		use()
		return listens(next.Client()) && !listens(old)
	})
	locktest.Must(t, next.Client().Del(t.Context(), "contended").Err())
	locktest.Must(t, next.Client().Publish(t.Context(), locktest.ChannelOf("contended"), 0).Err())
	<-at
}

// connectionsMade returns how many connections a server has accepted.
func connectionsMade(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "stats").Result()
	locktest.Must(t, err)
	for line := range strings.Lines(info) {
		if number, is := strings.CutPrefix(strings.TrimSpace(line), "total_connections_received:"); is {
			n, err := strconv.Atoi(number)
			locktest.Must(t, err)
			return n
		}
	}
	t.Fatal("INFO has no total_connections_received")
	return 0
}
