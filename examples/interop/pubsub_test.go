package interop_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// pubSubModes are the modes of messages in a Cluster, with their names on both sides. The other items use the defaults of
// both sides.
var pubSubModes = []struct {
	java string
	own  core.PubSub
}{
	{"ON", core.PubSubSharded},
	{"OFF", core.PubSubClassic},
}

// hasPubSubModes reports whether a version of Redisson has the setting shardedSubscriptionMode.
func hasPubSubModes(version string) bool { return atLeast(version, 3, 29) }

// atLeast reports whether a version of Redisson is the given one or later.
func atLeast(version string, major, minor int) bool {
	words := strings.SplitN(version, ".", 3)
	thisMajor, _ := strconv.Atoi(words[0])
	thisMinor, _ := strconv.Atoi(words[1])
	return thisMajor > major || thisMajor == major && thisMinor >= minor
}

// open opens a client of Redisson. In a Cluster it must use sharded messages. Versions without the setting
// test this when they connect, with an empty channel at some master. If that master does not own the slot of
// the channel, 3.27.2 concludes from the reply that the server has no sharded messages. So its choice depends
// on chance.
func (s *site) open(t *testing.T, jvm *interop.JVM, c interop.Config) *interop.Client {
	t.Helper()
	client := jvm.Open(t, c)
	if s.topology != cluster || hasPubSubModes(s.version) {
		return client
	}
	for range 50 {
		if s.publishesByShard(t, client, c.Prefix) {
			return client
		}
		client = jvm.Open(t, c)
	}
	t.Fatal("none of 50 clients of Redisson uses sharded messages")
	return nil
}

// publishesByShard releases a lock with a client and checks the mode of the message.
func (s *site) publishesByShard(t *testing.T, client *interop.Client, prefix string) bool {
	t.Helper()
	name := unique("probe")
	key := prefix + name
	channel := prefixed("redisson_lock__channel", key)
	classic := s.master(key).Subscribe(t.Context(), channel)
	defer classic.Close()
	if _, err := classic.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	sharded := s.messages(t, key, channel)
	lock := client.Thread(t).Lock(interop.Lock, name)
	lock.Lock().OK()
	lock.Unlock().OK()
	select {
	case <-sharded:
		return true
	case <-classic.Channel():
		return false
	}
}

// pubSubModesMeet configures the same mode on both sides. Messages wake the other side.
func pubSubModesMeet(t *testing.T, s *site) {
	k := kindOf("reentrant")
	k.waited = subscribedAnywhere
	for _, mode := range pubSubModes {
		t.Run(mode.java, func(t *testing.T) {
			config := s.config
			config.Sharded = mode.java
			for _, d := range bothWays(s.jvm.Open(t, config), s.locks(t, core.WithPubSub(mode.own))) {
				longest := time.Duration(0)
				for range 5 {
					longest = max(longest, handOver(t, s, k, d, unique("mode")))
				}
				t.Logf("%s: longest %s", d, longest.Round(10*time.Microsecond))
				if longest > wokenWithin {
					t.Errorf("%s: a caller waited %s after the release, want at most %s", d, longest, wokenWithin)
				}
			}
		})
	}
}

// pubSubModesDiffer configures different modes. No message arrives, so Java waits until the lease that it found
// expires, and Go waits until its next attempt. No caller waits for ever.
func pubSubModesDiffer(t *testing.T, s *site) {
	k, config := kindOf("reentrant"), s.config
	config.Sharded = "OFF"
	java, locks := javaParty{s.jvm.Open(t, config)}, s.locks(t, core.WithPubSub(core.PubSubSharded))
	own, name := goParty{locks}, unique("mode")

	holder := take(t, java, k, name)
	grants := own.ask(t, k, name)
	own.awaitWaiter(t, s, k, name)
	released := holder.release(t)
	next := receive(t, grants, "Go")
	t.Logf("Go polls: %s", next.at.Sub(released).Round(time.Millisecond))
	if took := next.at.Sub(released); took > 5*time.Second {
		t.Errorf("Go waited %s after the release, want about a second", took)
	}
	next.release(t)

	_, hold, err := locks.Lock(name).Acquire(t.Context(), core.WaitTime(0), core.LeaseTime(briefLease))
	if err != nil {
		t.Fatal(err)
	}
	k.waited = subscribedAnywhere
	grants = java.ask(t, k, name)
	java.awaitWaiter(t, s, k, name)
	released = time.Now()
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	next = receive(t, grants, "Java")
	t.Logf("Java waits for the end of a lease of %s: %s", briefLease, next.at.Sub(released).Round(time.Millisecond))
	if took := next.at.Sub(released); took > goneWithin {
		t.Errorf("Java waited %s after the release, want at most %s, the lease", took, briefLease)
	}
	next.release(t)
}

// subscribedAnywhere reports whether a client listens on the channel of RLock at any node, with either command.
func subscribedAnywhere(t *testing.T, s *site, key string) bool {
	t.Helper()
	var found atomic.Int64
	channel := prefixed("redisson_lock__channel", key)
	err := s.rdb.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		classic, err := node.PubSubNumSub(ctx, channel).Result()
		if err != nil {
			return err
		}
		sharded, err := node.PubSubShardNumSub(ctx, channel).Result()
		found.Add(classic[channel] + sharded[channel])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found.Load() > 0
}
