package faultproxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/mempipe"
)

// Latency delays every answer of Redis by the same time, however many answers are under way together.
// Create it with [NewLatency] or [Far].
type Latency struct {
	added atomic.Int64
	ended chan struct{}

	mu      sync.Mutex // guards running, because a client may dial when the test ends
	running sync.WaitGroup
}

// NewLatency returns a latency of d for [Latency.Dialer]. It stops when the test ends.
func NewLatency(tb testing.TB, d time.Duration) *Latency {
	tb.Helper()
	l := &Latency{ended: make(chan struct{})}
	l.Set(d)
	tb.Cleanup(func() {
		l.mu.Lock()
		close(l.ended)
		l.mu.Unlock()
		l.running.Wait()
	})
	return l
}

// Far returns a client like rdb, changed by opts, whose answers are delayed by d. It works in
// a synctest bubble. The client is closed when the test ends.
func Far(tb testing.TB, rdb *redis.Client, d time.Duration, opts ...func(*redis.Options)) (*Latency, *redis.Client) {
	tb.Helper()
	o := *rdb.Options()
	l := NewLatency(tb, d)
	o.Dialer = l.Dialer(o.Dialer)
	if o.MaxRetries == 0 {
		o.MaxRetries = -1 // as in Around
	}
	for _, opt := range opts {
		opt(&o)
	}
	far := redis.NewClient(&o)
	tb.Cleanup(func() { _ = far.Close() })
	return l, far
}

// Dialer adds the latency to the connections of another dialer. A connection is closed when either side closes it.
func (l *Latency) Dialer(
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		behind, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return l.connect(behind)
	}
}

// connect adds the latency to a connection, unless the test has ended.
func (l *Latency) connect(behind net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		_ = behind.Close()
		return nil, net.ErrClosed
	default:
	}
	near, far := mempipe.New()
	way := make(chan chunk, 10_000)
	l.running.Go(func() { l.forward(far, behind) })
	l.running.Go(func() { l.collect(behind, way) })
	l.running.Go(func() { l.deliver(way, far) })
	return near, nil
}

// Set changes the latency of answers from now on.
func (l *Latency) Set(d time.Duration) { l.added.Store(int64(d)) }

// chunk is a piece of an answer and the time at which it arrives.
type chunk struct {
	data []byte
	due  time.Time
}

func (l *Latency) forward(far, behind net.Conn) {
	defer behind.Close()
	buf := make([]byte, 4096)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		if _, err := behind.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *Latency) collect(behind net.Conn, way chan<- chunk) {
	defer close(way)
	for {
		buf := make([]byte, 4096)
		n, err := behind.Read(buf)
		if err != nil {
			return
		}
		select {
		case way <- chunk{buf[:n], time.Now().Add(time.Duration(l.added.Load()))}:
		case <-l.ended:
			return
		}
	}
}

func (l *Latency) deliver(way <-chan chunk, far net.Conn) {
	defer far.Close()
	for c := range way {
		timer := time.NewTimer(time.Until(c.due))
		select {
		case <-timer.C:
		case <-l.ended:
			timer.Stop()
			return
		}
		if _, err := far.Write(c.data); err != nil {
			return
		}
	}
}
