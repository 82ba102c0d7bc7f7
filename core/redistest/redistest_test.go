package redistest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

// TestMain discards the log lines about the faults that tests cause.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// once configures a client to send every command only once.
func once(o *redis.Options) { o.MaxRetries = -1 }

func TestServer_Take_Layout(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client()

	stranger := srv.Take("order:42", time.Minute)

	if want := `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+$`; !regexp.MustCompile(want).MatchString(stranger) {
		t.Errorf("stranger: got %q, want a UUID and a number", stranger)
	}
	if got, want := rdb.HGetAll(t.Context(), "order:42").Val(), map[string]string{stranger: "1"}; !maps.Equal(got, want) {
		t.Errorf("HGETALL: got %v, want %v", got, want)
	}
	if ttl := rdb.PTTL(t.Context(), "order:42").Val(); ttl <= 50*time.Second || ttl > time.Minute {
		t.Errorf("PTTL: got %s, want about a minute", ttl)
	}
}

func TestServer_Take_ChangesHands(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	first := srv.Take("k", time.Minute)
	second := srv.Take("k", time.Hour)
	if first == second {
		t.Errorf("two strangers have the same field %q", first)
	}
	if got := srv.Client().HKeys(t.Context(), "k").Val(); !slices.Equal(got, []string{second}) {
		t.Errorf("holders: got %q, want only %q", got, second)
	}
}

func TestServer_Free_Announces(t *testing.T) {
	t.Parallel()
	for key, channel := range map[string]string{
		"order:42":   "redisson_lock__channel:{order:42}",
		"order:{42}": "redisson_lock__channel:order:{42}",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			srv := redistest.New(t)
			rdb := srv.Client()
			sub := subscribe(t, rdb, channel)

			srv.Free(key) // it is free: no message
			srv.Take(key, time.Minute)
			srv.Free(key)
			rdb.Publish(t.Context(), channel, "end")

			for _, want := range []string{"0", "end"} {
				if got := message(t, sub); got != want {
					t.Errorf("message: got %q, want %q", got, want)
				}
			}
			if rdb.Exists(t.Context(), key).Val() != 0 {
				t.Error("the key is still there")
			}
		})
	}
}

func TestServer_Expire_IsSilent(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client()
	sub := subscribe(t, rdb, "redisson_lock__channel:{k}")

	srv.Take("k", time.Minute)
	srv.Expire("k")
	rdb.Publish(t.Context(), "redisson_lock__channel:{k}", "end")

	if got := message(t, sub); got != "end" {
		t.Errorf("message: got %q, want none of the expiry", got)
	}
	if rdb.Exists(t.Context(), "k").Val() != 0 {
		t.Error("the key is still there")
	}
}

func TestNew_InBubble(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "second"} { // a leak in one bubble makes the next one fail
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.New(t)
				rdb := srv.Client()
				sub := subscribe(t, rdb, "redisson_lock__channel:{k}")
				srv.Take("k", 30*time.Second)

				time.Sleep(10 * time.Second) // virtual time
				if got := rdb.PTTL(t.Context(), "k").Val(); got != 20*time.Second {
					t.Errorf("PTTL after 10 s: got %s, want 20 s", got)
				}
				time.AfterFunc(5*time.Second, func() { srv.Free("k") })
				start := time.Now()
				if got := message(t, sub); got != "0" || time.Since(start) != 5*time.Second {
					t.Errorf("message: got %q after %s, want 0 after 5s", got, time.Since(start))
				}
				srv.Take("k", time.Second)
				time.Sleep(time.Second + time.Millisecond) // virtual time
				if rdb.Exists(t.Context(), "k").Val() != 0 {
					t.Error("the key has outlived its lease")
				}
			})
		})
	}
}

func TestNew_InBubble_ReadTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.New(t).Client(once)
		start := time.Now()
		err := rdb.WithTimeout(2*time.Second).Do(t.Context(), "blpop", "l", 0).Err()
		if got := time.Since(start); err == nil || got != 2*time.Second {
			t.Errorf("got %v after %s, want a timeout after 2s", err, got)
		}
	})
}

// go-redis dials in a goroutine that outlives its caller. If the goroutine still sleeps between two attempts
// when the test ends, the bubble fails.
func TestNew_InBubble_NoDialOutlivesTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		rdb := srv.Client(once)
		srv.Down()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // sooner than a second attempt
		defer cancel()
		if err := rdb.Ping(ctx).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want refused", err)
		}
	})
}

func TestServer_DownUp(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client(once)
	sub := subscribe(t, rdb, "c")
	if err := rdb.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}

	srv.Down()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := rdb.Get(ctx, "k").Err(); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while down: got %v, want refused", err)
	}
	if _, err := sub.Receive(ctx); err == nil {
		t.Error("the subscription is still alive")
	}
	srv.Take("other", time.Minute) // a stranger can still act

	srv.Up()
	if got, err := rdb.Get(t.Context(), "k").Result(); got != "1" {
		t.Errorf("after Up: got %q, %v, want the data kept", got, err)
	}
	if rdb.Exists(t.Context(), "other").Val() != 1 {
		t.Error("the change of a stranger is missing")
	}
}

// As with a socket, the pool notices that an idle connection was cut.
func TestServer_DownUp_PooledConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client(once)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Down()
	srv.Up()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Up: %v", err)
	}
}

func TestServer_LoseNextReply(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client(once)

	lost := srv.LoseNextReply("incr")
	if err := rdb.Get(t.Context(), "n").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("another command: got %v, want no fault", err)
	}
	if err := rdb.Incr(t.Context(), "n").Err(); !errors.Is(err, io.EOF) {
		t.Errorf("Incr: got %v, want EOF", err)
	}
	<-lost
	if got, err := rdb.Incr(t.Context(), "n").Result(); got != 2 {
		t.Errorf("next Incr: got %d, %v, want 2: the first was executed", got, err)
	}
}

func TestServer_LoseNextReply_OfAScriptNotYetLoaded(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client(once)
	script := redis.NewScript(`return redis.call('incr', KEYS[1])`)

	for want := int64(2); want <= 6; want += 2 {
		srv.LoseNextReply("EVALSHA")
		if err := script.Run(t.Context(), rdb, []string{"n"}).Err(); !errors.Is(err, io.EOF) {
			t.Errorf("the run whose reply is lost: got %v, want EOF", err)
		}
		if got, err := script.Run(t.Context(), rdb, []string{"n"}).Int64(); got != want {
			t.Errorf("the run after it: got %d, %v, want %d", got, err, want)
		}
		if want == 4 {
			rdb.ScriptFlush(t.Context())
		}
	}
}

func TestServer_LoseReply_Matches(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client(once)
	srv.LoseReply(func(cmd []string) bool { return slices.Contains(cmd, "b") })
	if err := rdb.Incr(t.Context(), "a").Err(); err != nil {
		t.Errorf("a: %v", err)
	}
	if err := rdb.Incr(t.Context(), "b").Err(); !errors.Is(err, io.EOF) {
		t.Errorf("b: got %v, want EOF", err)
	}
}

func TestServer_PublishDoesNotWaitForSubscribers(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	rdb := srv.Client()
	sub := subscribe(t, rdb, "c")
	for range 1000 { // its client does not read
		if err := rdb.Publish(t.Context(), "c", "m").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := message(t, sub); got != "m" {
		t.Errorf("got %q, want m", got)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	o, err := redis.ParseURL(srv.URL())
	if err != nil || o.Addr != srv.Addr() {
		t.Fatalf("ParseURL(%q): got %v, %v", srv.URL(), o, err)
	}
	o.MaxRetries, o.DialerRetries = -1, 1
	elsewhere := redis.NewClient(o)
	defer elsewhere.Close()

	if err := srv.Client().Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere.Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("over TCP: got %q, want 1", got)
	}
	srv.Down()
	if err := elsewhere.Ping(t.Context()).Err(); err == nil {
		t.Error("while down: got no error")
	}
	srv.Up()
	if err := elsewhere.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Up: %v", err)
	}
	srv.Close()
	srv.Close()
	if err := elsewhere.Ping(t.Context()).Err(); err == nil {
		t.Error("after Close: got no error")
	}
}

func TestServer_Take_RefusesShortLease(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	defer func() {
		if recover() == nil {
			t.Error("Take with a lease of 0: got no panic")
		}
	}()
	srv.Take("k", 0)
}

func TestNew_HasNoAddress(t *testing.T) {
	t.Parallel()
	srv := redistest.New(t)
	if srv.Addr() != "" || srv.URL() != "" {
		t.Errorf("got %q and %q, want none", srv.Addr(), srv.URL())
	}
}

func subscribe(t *testing.T, rdb *redis.Client, channel string) *redis.PubSub {
	t.Helper()
	sub := rdb.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sub
}

func message(t *testing.T, sub *redis.PubSub) string {
	t.Helper()
	msg, err := sub.ReceiveMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return msg.Payload
}
