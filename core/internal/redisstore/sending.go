package redisstore

import "runtime"

// sending is what is to be written, and whether somebody does. Guarded by the pipeline's
// mutex.
type sending struct {
	buf, spare []byte
	busy       bool
	wake       chan struct{} // of the writer
}

// sender is who writes a command.
type sender uint8

const (
	byAnother sender = iota // who writes already, or the writer after it
	byWriter                // the goroutine; it is to be woken
	byItself                // its caller
)

// takeSending decides who writes what was submitted. The mutex is held.
func (p *pipeline) takeSending() sender {
	if p.sending.busy {
		return byAnother
	}
	p.sending.busy = true
	if p.queue.len() > writerAbove || p.queue.bytes > roomy {
		return byWriter
	}
	return byItself
}

// gathers has the caller that is to write let others go first, and decides again: they may
// have added much. The mutex is held, but not meanwhile.
func (p *pipeline) gathers() sender {
	p.mu.Unlock()
	runtime.Gosched()
	p.mu.Lock()
	if p.queue.bytes > roomy {
		return byWriter
	}
	return byItself
}

// takeOut is what is to be written. The mutex is held.
func (p *pipeline) takeOut() []byte {
	out := p.sending.buf
	p.sending.buf, p.sending.spare = p.sending.spare[:0], nil
	return out
}

// write writes, if there is anything, and reports whether there is more.
func (p *pipeline) write(out []byte) (more bool) {
	if len(out) > 0 {
		if _, err := p.Conn.Write(out); err != nil {
			p.fail(err)
			return false
		}
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
