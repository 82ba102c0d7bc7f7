package wire_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// Many callers call while connections hang, are cut, are slow and deliver their data in pieces. Each caller
// gets its own answer or none, within its time limit. After the storm every caller gets an answer.
func TestLines_Storm(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { stormOver(t, redistest.New(t).Client(), 3*time.Second, 5*time.Millisecond) })
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		stormOver(t, redisserver.Start(t).Client(), 3*time.Second, 10*time.Second) // a slow machine
	})
}

// storm is a number of callers, and the faults of their connections.
type storm struct {
	*bench

	proxy *faultproxy.Proxy
	over  time.Time
	slack time.Duration // how long after its time limit a call may end
}

// stormTimeout is the timeout of the Redis.
const stormTimeout = 300 * time.Millisecond

func stormOver(t *testing.T, rdb *redis.Client, lasts, slack time.Duration) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	proxy, through := faultproxy.Around(t, rdb, func(o *redis.Options) {
		dial, pieces := o.Dialer, newChance(seed, 1)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &piecemeal{Conn: conn, chance: pieces}, nil
		}
	})
	s, err := wire.New(through, wire.Config{Timeout: stormTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := &storm{bench: &bench{Redis: s, t: t, rdb: through}, proxy: proxy, slack: slack}
	for !w.asks("first", newChance(seed, 3)) { // until Redis knows the scripts, because a late NOSCRIPT is an answer, too
	}
	w.over = time.Now().Add(lasts)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() { w.calls(fmt.Sprint("caller:", i), newChance(seed, uint64(100+i))) })
	}
	w.blows(newChance(seed, 2))
	all.Wait()
}

// calls uses keys of one caller until the storm has ended. After that the caller must get an answer.
func (w *storm) calls(mine string, chance *chance) {
	n := 0
	next := func() bool { // a new name each time, because a release without an answer may be executed during the next attempt
		n++
		return w.asks(fmt.Sprint(mine, ":", n), chance)
	}
	for time.Now().Before(w.over) {
		next()
		time.Sleep(chance.upTo(20 * time.Millisecond)) // the pause between two calls
	}
	for limit := time.Now().Add(20 * time.Second); !next(); {
		if time.Now().After(limit) {
			w.t.Errorf("%s got no answer after the storm", mine)
			return
		}
		time.Sleep(50 * time.Millisecond) // the pause between two attempts
	}
}

// asks acquires a key, looks at it and releases it. It reports whether all three calls were answered.
func (w *storm) asks(own string, chance *chance) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if chance.of(4) {
		defer time.AfterFunc(chance.upTo(50*time.Millisecond), cancel).Stop()
	}
	granted, took := w.answerOf(ctx, w.take(time.Now(), own, own))
	seen, saw := w.answerOf(ctx, w.look(time.Now(), own))
	owners, _ := seen.([]any)
	for _, owner := range owners {
		if owner != own {
			w.t.Errorf("%s got the answer of %s", own, owner)
		}
	}
	if took && granted != int64(1) {
		w.t.Errorf("%s was refused: %v", own, granted)
	}
	if took && saw && len(owners) != 1 {
		w.t.Errorf("%s acquired the key, but its look returned %v", own, seen)
	}
	left, let := w.answerOf(ctx, w.leave(time.Now(), own, own))
	if took && let && left != int64(1) {
		w.t.Errorf("%s acquired the key, but its release found nothing", own)
	}
	return took && saw && let
}

// answerOf waits for an answer for at most the timeout, or takes a late one.
func (w *storm) answerOf(ctx context.Context, call wire.Call) (any, bool) {
	start := time.Now()
	v, fate, err := call.Wait(ctx, start.Add(stormTimeout))
	if took := time.Since(start); took > stormTimeout+w.slack {
		w.t.Errorf("a call took %s", took)
	}
	if fate == wire.Unknown && !wire.Pending(err) {
		v, fate, err = call.Late()
	}
	if fate == wire.Answered && err != nil && !redis.HasErrorPrefix(err, "ERR") {
		w.t.Errorf("answer: %v", err)
	}
	return v, fate == wire.Answered && err == nil
}

// blows injects faults until the storm has ended and then removes them.
func (w *storm) blows(chance *chance) {
	for time.Now().Before(w.over) {
		once := faultproxy.Once(scriptCommand)
		switch chance.IntN(8) {
		case 0:
			w.proxy.Cut()
		case 1:
			w.proxy.DropReply(once)
		case 2:
			w.proxy.DropRequest(once)
		case 3, 4:
			w.proxy.DelayReply(once, chance.upTo(400*time.Millisecond))
		case 5:
			w.proxy.DelayRequest(once, chance.upTo(400*time.Millisecond))
		case 6:
			w.proxy.BlackHole(true)
			time.Sleep(chance.upTo(150 * time.Millisecond)) // the length of the fault
			w.proxy.BlackHole(false)
		case 7:
			w.proxy.Refuse(true)
			time.Sleep(chance.upTo(20 * time.Millisecond)) // the length of the fault
			w.proxy.Refuse(false)
		}
		time.Sleep(chance.upTo(60 * time.Millisecond)) // the pause between two faults
	}
}

// chance is a source of random numbers for several goroutines.
type chance struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newChance(seed, who uint64) *chance { return &chance{rng: rand.New(rand.NewPCG(seed, who))} }

// IntN returns a number below n.
func (c *chance) IntN(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// of returns true with a probability of 1/n.
func (c *chance) of(n int) bool { return c.IntN(n) == 0 }

func (c *chance) upTo(d time.Duration) time.Duration { return time.Duration(c.IntN(int(d))) }

// piecemeal is a connection that is read in pieces.
type piecemeal struct {
	net.Conn

	chance *chance
}

func (c *piecemeal) Read(b []byte) (int, error) {
	if n := c.chance.IntN(60); n > 0 && n < 40 {
		b = b[:min(n, len(b))]
	}
	return c.Conn.Read(b)
}
