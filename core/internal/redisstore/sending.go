package redisstore

import (
	"runtime"
	"time"
)

// sending is what is to be written, and whether somebody does. Guarded by the pipeline's
// mutex.
type sending struct {
	buf, spare []byte
	busy       bool
	since      time.Time     // when a caller began to write
	wake       chan struct{} // of the writer
}

// How many calls under way make few and large writes better than early ones: a write is half
// of what a call costs this process when Redis is near.
const (
	company = 3  // its caller lets the others that can run go first, then writes for all of them
	crowd   = 64 // the writer does
)

// takeOut is what is to be written. The mutex is held.
func (p *pipeline) takeOut() []byte {
	out := p.sending.buf
	p.sending.buf, p.sending.spare = p.sending.spare[:0], nil
	return out
}

// jammed reports whether a caller has been writing for the timeout.
func (p *pipeline) jammed(now time.Time, timeout time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineOpen && p.sending.busy && now.Sub(p.sending.since) >= timeout
}

// write writes, and reports whether there is more.
func (p *pipeline) write(out []byte) (more bool) {
	_, err := p.Conn.Write(out)
	if err != nil {
		p.fail(err)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(out) <= largeBuffer {
		p.sending.spare = out[:0]
	}
	p.sending.busy = len(p.sending.buf) > 0
	return p.sending.busy
}

// largeBuffer is not kept.
const largeBuffer = 1 << 20

// writes is the writer: it lets others have their say first.
func (p *pipeline) writes() {
	for {
		select {
		case <-p.sending.wake:
		case <-p.life.Done():
			return
		}
		for more := true; more; {
			runtime.Gosched()
			p.mu.Lock()
			out := p.takeOut()
			p.mu.Unlock()
			more = p.write(out)
		}
	}
}

// wake wakes who waits for it, now or later.
func wake(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default:
	}
}
