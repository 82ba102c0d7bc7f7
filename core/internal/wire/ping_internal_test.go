package wire

import (
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// overslept is a connection that is read late: what has come is there, but the deadline is
// over.
type overslept struct {
	net.Conn

	late *atomic.Bool
}

func (c overslept) Read(b []byte) (int, error) {
	if c.late.CompareAndSwap(true, false) {
		time.Sleep(time.Minute) // in the time of the bubble
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(b)
}

// pongs answers pings until the other end is closed.
func pongs(conn net.Conn) {
	defer conn.Close()
	for in := make([]byte, len(pingCommand)); ; {
		if _, err := io.ReadFull(conn, in); err != nil {
			return
		}
		if _, err := conn.Write([]byte("+PONG\r\n")); err != nil {
			return
		}
	}
}

// A process that slept for longer than the timeout while it asked finds the answer there:
// Redis was not silent.
func TestHealth_SleepOfTheProcessIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Bool
		late.Store(true)
		h := newHealth("", newDialer(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
			near, far := mempipe.New()
			go pongs(far)
			return overslept{near, &late}, nil
		}}, time.Second), Reports{})
		speaks, done := h.waits()
		time.Sleep(2 * time.Minute) // in the time of the bubble
		done()
		if speaks.Err() != nil {
			t.Errorf("silent: %v", context.Cause(speaks))
		}
		h.close()
	})
}
