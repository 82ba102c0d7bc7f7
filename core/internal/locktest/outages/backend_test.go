package outages_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// recordBackend returns a client behind a proxy that has taken a lock once, and a recorder of what it reports about
// Redis.
func recordBackend(t *testing.T, b *locktest.Redis) (*core.Client, *faultproxy.Proxy, *locktest.BackendRecorder) {
	t.Helper()
	obs := &locktest.BackendRecorder{}
	locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
	locktest.Must(t, attempt(t, locks, "k"))
	return locks, proxy, obs
}

func attempt(t *testing.T, locks *core.Client, key string) error {
	t.Helper()
	return locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(0))
}

// One event reports that locks cannot be acquired, with the cause, and another event that they can be acquired again,
// however many callers come in between.
func TestBackend_OneEventPerChange(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy, obs := recordBackend(t, b)
		proxy.Refuse(true)
		for range 20 {
			locktest.WantErr(t, attempt(t, locks, "k"), core.ErrUnavailable)
			locktest.Pass(time.Second)
		}
		proxy.Refuse(false)
		locktest.Eventually(t, "locks again", func() bool {
			locktest.Pass(time.Second)
			return attempt(t, locks, "k") == nil
		})
		for range 20 {
			locktest.Must(t, attempt(t, locks, "k"))
		}
		events := obs.All()
		if len(events) != 2 || events[0].Available || !events[1].Available {
			t.Fatalf("got %+v", events)
		}
		locktest.WantErr(t, events[0].Cause, core.ErrUnavailable)
		if down := events[1].Lasted; events[1].Cause != nil || down < 20*time.Second || down > 30*time.Second {
			t.Errorf("the end of an outage of 20s: got %+v", events[1])
		}
	})
}

// A caller whose wait time is shorter than the time of an answer gets no answer. This is not an outage, because an
// outage is a silence for as long as the backend timeout. Nor is it an outage if the next caller in the queue, which
// sends nothing, gets no answer.
func TestBackend_AnswerAfterAShortWait(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy, obs := recordBackend(t, b)
		for range 20 {
			slow := proxy.DelayReply(faultproxy.Any(), 50*time.Millisecond)
			short := core.WaitTime(20 * time.Millisecond)
			for _, o := range []<-chan locktest.Outcome{locktest.GoAcquire(t.Context(), locks.Lock("k"), short), locktest.GoAcquire(t.Context(), locks.Lock("k"), short)} {
				locktest.WantErr(t, (<-o).Err, core.ErrUnavailable)
			}
			slow.Remove()
			locktest.Pass(20 * time.Second)
			locktest.Must(t, attempt(t, locks, "k"))
		}
		if events := obs.All(); len(events) != 0 {
			t.Errorf("got the events %+v, want none", events)
		}
	})
}

// A permanently silent Redis is an outage even if no caller waits as long as the backend timeout.
func TestBackend_OutageSeenOnlyByShortWaits(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy, obs := recordBackend(t, b)
		proxy.BlackHole(true)
		for range 50 {
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(20*time.Millisecond))
			locktest.WantErr(t, err, core.ErrUnavailable)
			locktest.Pass(100 * time.Millisecond)
		}
		if events := obs.All(); len(events) != 1 || events[0].Available {
			t.Errorf("got %+v", events)
		}
		proxy.BlackHole(false)
	})
}

// A key that cannot be locked because its token counter is broken is not reported as an outage at every request.
func TestBackend_BadKeyIsReportedOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.BackendRecorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		b.Set(t.Context(), locktest.TokenCounterOf("bad"), "text", 0)
		for range 300 {
			_, _, err := locks.FencedLock("bad").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrUnavailable)
			locktest.Must(t, attempt(t, locks, "good"))
			locktest.Pass(100 * time.Millisecond)
		}
		if n := len(obs.All()); n < 2 || n > 2*4 {
			t.Errorf("%d events in 30 seconds, want 2 to 8", n)
		}
	})
}

// A key that holds something other than a lock is not an outage.
func TestBackend_KeyOfAnotherTypeIsNotAnOutage(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.BackendRecorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		b.Set(t.Context(), "bad", "text", 0)
		for range 3 {
			locktest.WantErr(t, attempt(t, locks, "bad"), core.ErrUnavailable)
			_, _, err := locks.MultiLock("bad", "good").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrUnavailable)
			locktest.Must(t, attempt(t, locks, "good"))
		}
		if events := obs.All(); len(events) != 0 {
			t.Errorf("got the events %+v, want none", events)
		}
	})
}

// Without an observer of acquisitions, the client logs the hash of a key that holds something other than a lock, at
// most once in ten seconds. The test is not parallel because it replaces the default logger.
func TestBackend_KeyOfAnotherTypeIsLogged(t *testing.T) { //nolint:paralleltest // see above
	var buf bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	defer slog.SetDefault(before)
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Set(t.Context(), "order:secret", "text", 0)
		locks, observed := b.Locks(), b.Locks(core.WithObserver((&locktest.Recorder{}).Observer()))
		for range 12 {
			locktest.WantErr(t, attempt(t, locks, "order:secret"), core.ErrUnavailable)
			locktest.WantErr(t, attempt(t, observed, "order:secret"), core.ErrUnavailable)
			locktest.Pass(time.Second)
		}
	})
	text := buf.String()
	if n := strings.Count(text, "level=ERROR msg=\"key holds something that is not a lock\""); n != 2 || strings.Count(text, "\n") != 2 {
		t.Errorf("%d lines in 12 seconds, want 2:\n%s", n, text)
	}
	if !strings.Contains(text, "key_hash="+core.KeyHash("order:secret")) || strings.Contains(text, "secret") {
		t.Errorf("logged %s", text)
	}
}

// Neither a taken lock nor an acquisition that the caller has ended is an outage.
func TestBackend_TakenIsNotAnOutage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.BackendRecorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		b.Take("k", locktest.Stranger, time.Hour)
		locktest.WantErr(t, attempt(t, locks, "k"), core.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if events := obs.All(); len(events) != 0 {
			t.Errorf("got the events %+v, want none", events)
		}
	})
}

// Without an observer the client logs the change, with the cause and without the key. The test is not parallel
// because it replaces the default logger.
func TestBackend_IsLoggedWithoutAnObserver(t *testing.T) { //nolint:paralleltest // see above
	for name, tt := range map[string]struct {
		opts []core.Option
		want int
	}{
		"none":                 {nil, 2},
		"of other things":      {[]core.Option{core.WithObserver((&locktest.Recorder{}).Observer())}, 2},
		"of the backend state": {[]core.Option{core.WithObserver((&locktest.BackendRecorder{}).Observer())}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
			defer slog.SetDefault(before)

			b := locktest.Real(t)
			locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "-evalsha").Err())
			locks := locktest.NewClient(t, b.Connect(), tt.opts...)
			for range 5 {
				locktest.WantErr(t, attempt(t, locks, "order:secret"), core.ErrUnavailable)
			}
			locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "+evalsha").Err())
			locktest.Must(t, attempt(t, locks, "order:secret"))

			lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
			if buf.Len() == 0 {
				lines = nil
			}
			if len(lines) != tt.want {
				t.Fatalf("logged %d lines:\n%s", len(lines), buf.String())
			}
			if tt.want == 0 {
				return
			}
			for i, words := range [][]string{{"level=ERROR", "unavailable", "NOPERM", "evalsha"}, {"level=INFO", "available again"}} {
				for _, word := range words {
					if !strings.Contains(lines[i], word) {
						t.Errorf("line %d does not say %q: %s", i, word, lines[i])
					}
				}
				if strings.Contains(lines[i], "secret") {
					t.Errorf("line %d names the key: %s", i, lines[i])
				}
			}
		})
	}
}
