package wire

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// setWall returns the reading of a clock whose wall clock was set by d, while its monotonic clock did not
// change. No function of package time does that.
func setWall(t *testing.T, now time.Time, d time.Duration) time.Time {
	t.Helper()
	// See time.Time: if a Time has a monotonic reading, the seconds are in the bits above the nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&now))
	before := now
	*wall += uint64(int64(d/time.Second)) << 30
	if now.Sub(before) != 0 || now.Round(0).Sub(before.Round(0)) != d {
		t.Fatal("package time represents readings in another way: adapt setWall")
	}
	return now
}

// Setting the wall clock does not change how long a call has waited for its answer.
func TestHealth_ClockIsSet(t *testing.T) {
	t.Parallel()
	const timeout = time.Hour // longer than any machine takes
	for name, step := range map[string]time.Duration{"back": 24 * time.Hour, "forward": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHealth("", timeout, Reports{})
			defer h.close()
			h.recordSending(setWall(t, time.Now(), step))
			if h.unanswered(timeout) {
				t.Error("silent at once")
			}
			h.recordAnswer()
			h.recordSending(setWall(t, time.Now().Add(-2*timeout), step))
			if !h.unanswered(timeout) {
				t.Error("not silent after twice the timeout")
			}
		})
	}
}

// An operation gives up at the moment at which a silent node answers. The silence has then ended, and the
// operation does not begin another one.
func TestHealth_RecordTimeout_WhileTheNodeReturns(t *testing.T) {
	t.Parallel()
	h := newHealth("", time.Second, Reports{})
	for range 20_000 {
		h.recordSending(time.Now().Add(-time.Minute))
		h.recordTimeout(errNoConnection)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { h.recordTimeout(errNoAnswer) })
		}
		all.Go(h.returns)
		all.Wait()
		if err := h.err(); err != nil {
			t.Fatalf("silent although it has answered and got no command since: %v", err)
		}
	}
}

// A node that is closed as soon as it has fallen silent does not stay silent for ever.
func TestHealth_Close_WhenSilent(t *testing.T) {
	t.Parallel()
	for name, closeAt := range map[string]func(h *health, closed func()){
		"by an attempt to connect": func(h *health, closed func()) {
			h.recordSending(time.Now())
			_, done := h.startWaiting()
			defer done()
			time.Sleep(2 * time.Second) // virtual time
			closed()
		},
		"by an operation": func(h *health, closed func()) {
			h.recordSending(time.Now())
			time.Sleep(2 * time.Second) // as above
			closed()
			h.recordTimeout(errNoAnswer)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r *Redis
				var silent atomic.Int64
				var all sync.WaitGroup
				closed := sync.OnceFunc(func() { all.Go(func() { r.Close() }) })
				client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
				defer client.Close()
				var err error
				r, err = New(client, Config{Timeout: time.Second, Reports: Reports{
					Silent: func(string, error) {
						silent.Add(1)
						closed()
					},
					Answers: func(string) { silent.Add(-1) },
				}})
				if err != nil {
					t.Fatal(err)
				}
				closeAt(r.single.health, func() {
					closed()
					all.Wait()
				})
				if n := silent.Load(); n != 0 {
					t.Errorf("%d silences did not end", n)
				}
			})
		})
	}
}

// Time in which this process did not run does not count as silence. The wait of an earlier command starts
// again at the end of that time.
func TestHealth_SkipSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		h := newHealth("", timeout, Reports{})
		defer h.close()
		h.skipSleep(time.Hour) // no command is unanswered
		if h.unanswered(0) {
			t.Error("a command counts as unanswered, want none")
		}
		h.recordSending(time.Now())
		time.Sleep(timeout / 2) // virtual time
		time.Sleep(time.Hour)   // virtual time in which the process sleeps
		h.skipSleep(time.Hour)
		if h.unanswered(timeout) {
			t.Error("the sleep of the process counts as silence")
		}
		time.Sleep(timeout / 2) // virtual time
		if !h.unanswered(timeout) {
			t.Error("not silent after the timeout")
		}
		h.skipSleep(time.Hour) // longer than the command has been unanswered
		if h.unanswered(1) {
			t.Error("the command was sent in the future")
		}
	})
}

// A command that waits when its node falls silent may still be executed, whatever the fate of the operation
// that found the silence.
func TestHealth_FateOfAWaitingCommand(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"not sent":            markUnsent(errManyDials),
		"not sent, explained": &explainedError{markUnsent(errManyDials), ": ", errNoConnection},
		"refused, explained":  AfterEarlier(ReplyError("NOPERM no"), errNoAnswer),
		"no answer":           &interruptedError{errNoAnswer},
		"lost":                markLost(errPipelineClosed),
		"unreadable":          &UnreadableError{errGarbled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHealth("", time.Second, Reports{})
				defer h.close()
				c := newCommand("evalsha", "digest", nil)
				c.health, c.at = h, time.Now()
				h.recordSending(c.at)
				var waits sync.WaitGroup
				waits.Go(func() {
					err := c.awaitSlow(t.Context(), time.Now().Add(time.Minute))
					if fate := FateOf(err); fate != Unknown {
						t.Errorf("the waiting command: %v, fate %d", err, fate)
					}
				})
				time.Sleep(time.Second) // virtual time
				h.recordTimeout(failure)
				waits.Wait()
				if fate := FateOf(markUnsent(h.err())); fate != NotSent && !Answer(failure) {
					t.Errorf("the next command: %v, fate %d", h.err(), fate)
				}
			})
		})
	}
}
