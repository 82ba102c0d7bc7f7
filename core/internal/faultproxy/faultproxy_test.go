package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a real Redis with a client through a proxy and a direct client.
type rig struct {
	proxy  *faultproxy.Proxy
	rdb    *redis.Client // through the proxy; no retries
	direct *redis.Client
}

// each runs body with RESP2 and RESP3.
func each(t *testing.T, body func(t *testing.T, r rig)) {
	t.Helper()
	for name, protocol := range map[string]int{"resp2": 2, "resp3": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redisserver.Start(t)
			proxy := faultproxy.New(t, server.Addr())
			rdb := redis.NewClient(&redis.Options{
				Addr: proxy.Addr(), Protocol: protocol, MaxRetries: -1, ReadTimeout: 10 * time.Second,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			body(t, rig{proxy: proxy, rdb: rdb, direct: server.Client()})
		})
	}
}

// wantN requires the value of the counter that the tests increment.
func (r rig) wantN(t *testing.T, want string) {
	t.Helper()
	if got := r.direct.Get(t.Context(), "n").Val(); got != want {
		t.Errorf("n in Redis: got %q, want %q", got, want)
	}
}

// incr increments the counter through the proxy, in the background.
func (r rig) incr(t *testing.T) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.rdb.Incr(t.Context(), "n").Err() }()
	return done
}

func TestProxy_DropReply(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.DropReply(faultproxy.Nth(2, faultproxy.Command("incr")))
		for i, want := range []error{nil, io.EOF, nil} {
			if err := r.rdb.Incr(t.Context(), "n").Err(); !errors.Is(err, want) {
				t.Errorf("Incr %d: got %v, want %v", i+1, err, want)
			}
		}
		r.wantN(t, "3")
		if rule.Hits() != 1 {
			t.Errorf("hits: got %d, want 1", rule.Hits())
		}
	})
}

func TestProxy_DropReply_InPipeline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		r.proxy.DropReply(faultproxy.Once(faultproxy.Containing("b")))
		pipe := r.rdb.Pipeline()
		a, b, c := pipe.Incr(t.Context(), "a"), pipe.Incr(t.Context(), "b"), pipe.Incr(t.Context(), "n")
		if _, err := pipe.Exec(t.Context()); err == nil {
			t.Error("Exec: got no error")
		}
		// go-redis returns the error for all commands of a broken pipeline, but keeps the values that it has
		// read.
		if got, want := []int64{a.Val(), b.Val(), c.Val()}, []int64{1, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("replies: got %v, want %v", got, want)
		}
		if got := r.direct.Get(t.Context(), "b").Val(); got != "1" {
			t.Errorf("b: got %q, want 1: it was executed", got)
		}
	})
}

func TestProxy_DropRequest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		r.proxy.DropRequest(faultproxy.Once(faultproxy.Containing("n")))
		pipe := r.rdb.Pipeline()
		a, n := pipe.Incr(t.Context(), "a"), pipe.Incr(t.Context(), "n")
		_, _ = pipe.Exec(t.Context())
		if a.Val() != 1 || !errors.Is(n.Err(), io.EOF) {
			t.Errorf("got %d and %v, want 1 and EOF", a.Val(), n.Err())
		}
		r.wantN(t, "")
	})
}

func TestProxy_HoldReply(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.HoldReply(faultproxy.Once(faultproxy.Command("incr")))
		held := r.incr(t)
		<-rule.Hit()
		r.await(t, "1") // executed, unanswered
		select {
		case err := <-held:
			t.Fatalf("the reply came while held: %v", err)
		default:
		}
		rule.Release()
		if err := <-held; err != nil {
			t.Errorf("after Release: %v", err)
		}
	})
}

// await polls until the counter is at want.
func (r rig) await(t *testing.T, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // for a test that fails
	defer cancel()
	for ctx.Err() == nil {
		if r.direct.Get(ctx, "n").Val() == want {
			return
		}
	}
	t.Fatalf("n did not become %s", want)
}

func TestProxy_Delay(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	each(t, func(t *testing.T, r rig) {
		r.proxy.DelayReply(faultproxy.Containing("slow-reply"), delay)
		r.proxy.DelayRequest(faultproxy.Containing("slow-request"), delay)
		for _, key := range []string{"slow-reply", "slow-request"} {
			start := time.Now()
			if err := r.rdb.Incr(t.Context(), key).Err(); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if took := time.Since(start); took < delay {
				t.Errorf("%s: took %s, want at least %s", key, took, delay)
			}
		}
	})
}

func TestProxy_HoldRequest_LandsAfterTheClientHasGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.HoldRequest(faultproxy.Once(faultproxy.Command("append")))
		impatient := r.rdb.WithTimeout(50 * time.Millisecond)
		if err := impatient.Append(t.Context(), "n", "late").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("held Append: got %v, want a timeout", err)
		}
		<-rule.Hit()
		if err := r.rdb.Append(t.Context(), "n", "early").Err(); err != nil {
			t.Fatal(err)
		}
		r.wantN(t, "early")
		if n := rule.Executed(); n != 0 {
			t.Errorf("executed while held: %d", n)
		}
		rule.Release()
		r.await(t, "earlylate")
		for rule.Executed() != 1 {
			runtime.Gosched() // the reply may not have arrived yet
		}
	})
}

func TestProxy_BlackHole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		impatient := r.rdb.WithTimeout(50 * time.Millisecond)
		if err := impatient.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		r.proxy.BlackHole(true)
		for range 2 { // an old connection, then a new one
			if err := impatient.Incr(t.Context(), "n").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("in the hole: got %v, want a timeout", err)
			}
		}
		r.wantN(t, "")
		r.proxy.BlackHole(false)
		if err := r.rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("after the hole: %v", err)
		}
		r.wantN(t, "1")
	})
}

func TestProxy_BlackHole_SubscriptionStaysDead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		sub := subscribe(t, r, "c")
		r.proxy.BlackHole(true)
		r.direct.Publish(t.Context(), "c", "lost")
		r.direct.Publish(t.Context(), "c", "lost")
		// Wait until the hole has discarded the request, before the hole ends.
		if _, err := sub.ReceiveTimeout(t.Context(), 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("in the hole: got %v, want a timeout", err)
		}
		r.proxy.BlackHole(false)
		r.direct.Publish(t.Context(), "c", "also lost")
		if _, err := sub.ReceiveTimeout(t.Context(), 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the hole: got %v, want a timeout", err)
		}
	})
}

func TestProxy_Cut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.HoldRequest(faultproxy.Command("incr"))
		cut := r.incr(t)
		<-rule.Hit()
		r.proxy.Cut()
		if err := <-cut; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
		rule.Remove()
		r.await(t, "1")
		if err := r.rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("a new connection: %v", err)
		}
	})
}

func TestProxy_Refuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		if err := r.rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		r.proxy.Refuse(true)
		if err := r.rdb.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("while refusing: got no error")
		}
		r.proxy.Refuse(false)
		if err := r.rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		r.wantN(t, "1")
	})
}

func TestProxy_PubSub_PassesUnharmed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		sub := subscribe(t, r, "a", "b")
		watch := r.proxy.Watch(faultproxy.Command("ping"))
		steps := []func() error{
			func() error { return r.direct.Publish(t.Context(), "a", "1").Err() },
			func() error { return sub.Ping(t.Context(), "hello") },
			func() error { return sub.SSubscribe(t.Context(), "s") },
			func() error { return r.direct.SPublish(t.Context(), "s", "2").Err() },
			func() error { return sub.Unsubscribe(t.Context()) },
		}
		want := []string{
			"Message<a: 1>", "Pong<hello>", "ssubscribe: s", "Message<s: 2>",
			"unsubscribe: a", "unsubscribe: b",
		}
		var got []string
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			got = append(got, receive(t, sub))
		}
		got = append(got, receive(t, sub))
		slices.Sort(got[4:])
		if !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if watch.Hits() != 1 {
			t.Errorf("pings seen: got %d, want 1", watch.Hits())
		}
	})
}

func TestProxy_PubSub_HeldConfirmation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		sub := subscribe(t, r, "a")
		rule := r.proxy.HoldReply(faultproxy.All(faultproxy.Command("subscribe"), faultproxy.Containing("b")))
		if err := sub.Subscribe(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		<-rule.Hit()
		if v, err := sub.ReceiveTimeout(t.Context(), 30*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("while held: got %v, %v, want a timeout", v, err)
		}
		rule.Release()
		if got := receive(t, sub); got != "subscribe: b" {
			t.Errorf("got %q, want the confirmation of b", got)
		}
	})
}

// A message arrives while a reply is pending. The rule must apply to the reply.
func TestProxy_PubSub_MessageWhileAReplyIsDue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		sub := subscribe(t, r, "a")
		rule := r.proxy.HoldRequest(faultproxy.Command("ping"))
		if err := sub.Ping(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		<-rule.Hit()
		r.direct.Publish(t.Context(), "a", "m")
		if got := receive(t, sub); got != "Message<a: m>" {
			t.Errorf("got %q, want the message", got)
		}
		rule.Release()
		if got := receive(t, sub); got != "Pong<p>" {
			t.Errorf("got %q, want the pong", got)
		}
	})
}

func TestProxy_RepliesPassUnharmed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		ctx := t.Context()
		big := string(make([]byte, 100_000))
		pipe := r.rdb.TxPipeline()
		pipe.HSet(ctx, "h", "f", big)
		all := pipe.HGetAll(ctx, "h")
		script := pipe.Eval(ctx, "return {1, 'x', {false, 'y'}, {ok='fine'}}", nil)
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		if all.Val()["f"] != big {
			t.Error("HGetAll: not the value that was set")
		}
		if got := script.Val(); len(got.([]any)) != 4 {
			t.Errorf("Eval: got %v", got)
		}
		if err := r.rdb.Do(ctx, "nonsense").Err(); err == nil {
			t.Error("an error reply did not come through")
		}
		if err := r.rdb.Get(ctx, "absent").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("null: got %v", err)
		}
	})
}

func TestProxy_ServerKilled(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	proxy := faultproxy.New(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	blocking := proxy.Watch(faultproxy.Command("blpop"))
	done := make(chan error, 1)
	go func() { done <- rdb.BLPop(t.Context(), 0, "l").Err() }()
	<-blocking.Hit()
	server.Kill()
	if err := <-done; err == nil {
		t.Error("a command in flight when the server died: got no error")
	}
}

func subscribe(t *testing.T, r rig, channels ...string) *redis.PubSub {
	t.Helper()
	sub := r.rdb.Subscribe(t.Context(), channels...)
	t.Cleanup(func() { _ = sub.Close() })
	for range channels {
		receive(t, sub)
	}
	return sub
}

func receive(t *testing.T, sub *redis.PubSub) string {
	t.Helper()
	v, err := sub.ReceiveTimeout(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return v.(interface{ String() string }).String()
}

func TestProxy_AnswerError_InPipeline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		rule := r.proxy.AnswerError(faultproxy.Containing("n"), "BUSY a script runs")
		pipe := r.rdb.Pipeline()
		a, n, b := pipe.Incr(t.Context(), "a"), pipe.Incr(t.Context(), "n"), pipe.Incr(t.Context(), "b")
		_, _ = pipe.Exec(t.Context())
		if a.Val() != 1 || b.Val() != 1 || !redis.HasErrorPrefix(n.Err(), "BUSY ") {
			t.Errorf("got %d, %v, %d; want 1, BUSY, 1", a.Val(), n.Err(), b.Val())
		}
		r.wantN(t, "")
		if rule.Hits() != 1 || rule.Executed() != 0 {
			t.Errorf("%d hits, %d executed; want 1 and 0", rule.Hits(), rule.Executed())
		}
		rule.Remove()
		if err := r.rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Error(err)
		}
		r.wantN(t, "1")
	})
}
