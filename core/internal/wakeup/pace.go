package wakeup

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
)

const (
	// The pause between two attempts to connect to a node doubles up to longestPause. Such long pauses are
	// acceptable, because waiters also poll.
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
	// healthyAfter is the age of a connection from which the next pause is firstPause again.
	healthyAfter = 3 * longestPause
)

// pace limits the rate of connections to a node.
type pace struct {
	mu    sync.Mutex
	pause time.Duration // pause before the next attempt
	began time.Time     // start of the last attempt
}

func (p *pace) recordAttempt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Now()
}

// healthy reports whether the last attempt was made at least healthyAfter ago.
func (p *pace) healthy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.began) >= healthyAfter
}

// sleep sleeps before the next attempt to connect, or until ctx is canceled. It also records that attempt, which begins
// when sleep returns.
func (p *pace) sleep(ctx context.Context) {
	pause := firstPause
	if !p.healthy() {
		pause = min(max(2*p.pause, firstPause), longestPause)
	}
	p.pause = pause
	_ = jitter.Sleep(ctx, pause) //nolint:errcheck // the caller checks ctx
	p.recordAttempt()
}
