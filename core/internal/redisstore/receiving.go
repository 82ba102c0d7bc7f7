package redisstore

import (
	"errors"
	"fmt"
	"time"
)

// receiving is who reads, guarded by the pipeline's mutex, and what was read, which
// belongs to who reads.
//
//	nobody -> caller  a call is alone, and so were those before it
//	caller -> nobody  it has its reply
//	caller -> reader  there are others, or the reply takes long
//	nobody -> reader  a call is not alone, or there was none for a moment
//	reader -> nobody  calls were alone for a while
type receiving struct {
	by    receiver
	alone int           // how many calls in a row were
	wake  chan struct{} // of the reader
	limit time.Time     // of the caller that reads, as the connection knows it

	in     []byte // from the first byte that the parser needs
	parser parser
}

type receiver uint8

const (
	byReader receiver = iota
	byCaller
	byNobody
)

// takeReading decides who reads when nobody does: the caller if its call is alone and Redis
// near, else the reader. The mutex is held.
func (p *pipeline) takeReading(alone bool) (caller bool) {
	if p.receiving.by != byNobody {
		return false
	}
	if alone && p.flow.near() {
		p.receiving.by = byCaller
		return true
	}
	p.receiving.by = byReader
	wake(p.receiving.wake)
	return false
}

// readFor reads until c has its reply, for a moment at most.
func (p *pipeline) readFor(c *command) {
	now := time.Now()
	if p.receiving.limit.Sub(now) < patience {
		p.receiving.limit = now.Add(2 * patience)
		if err := p.Conn.SetReadDeadline(p.receiving.limit); err != nil {
			p.fail(err)
			return
		}
	}
	for !c.over() {
		if err := p.read(); err != nil {
			if !timedOut(err) {
				p.fail(err)
				return
			}
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() > 0 {
		p.receiving.by = byReader
		wake(p.receiving.wake)
		return
	}
	p.receiving.by = byNobody
}

// reads is the reader.
func (p *pipeline) reads() {
	for {
		err := p.read()
		if err != nil {
			p.fail(err)
			return
		}
		for p.leavesReading() {
			if !p.rests() {
				return
			}
		}
	}
}

// leavesReading reports whether nobody reads now, but calls that are alone.
func (p *pipeline) leavesReading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() == 0 && p.receiving.alone >= readsAfter {
		p.receiving.by, p.receiving.alone = byNobody, 0
		return true
	}
	return false
}

// rests waits until the reader has to read again; false when the pipeline ends.
func (p *pipeline) rests() bool {
	timer := time.NewTimer(unread)
	defer timer.Stop()
	for {
		select {
		case <-p.life.Done():
			return false
		case <-p.receiving.wake:
		case <-timer.C:
			if !p.resumes() {
				timer.Reset(unread)
				continue
			}
		}
		p.receiving.limit = time.Time{}
		if err := p.Conn.SetReadDeadline(time.Time{}); err != nil {
			p.fail(err)
			return false
		}
		return true
	}
}

// resumes has the reader read when there was no call for a moment.
func (p *pipeline) resumes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.receiving.by != byNobody || p.receiving.alone > 0 {
		p.receiving.alone = 0
		return false
	}
	p.receiving.by = byReader
	return true
}

// read reads what has come, and completes whom it answers.
func (p *pipeline) read() error {
	r := &p.receiving
	if cap(r.in)-len(r.in) < minRead {
		r.in = append(make([]byte, 0, 2*cap(r.in)+minRead), r.in...)
	}
	n, err := p.Conn.Read(r.in[len(r.in):cap(r.in)])
	r.in = r.in[:len(r.in)+n]
	if n > 0 {
		if err := p.take(); err != nil {
			return err
		}
	}
	return err
}

const minRead = 4 << 10

// take completes those whose replies are there.
func (p *pipeline) take() error {
	r := &p.receiving
	now := time.Now()
	rest := r.in
	var room [64]any
	for more := true; more; {
		replies, length, err := r.parser.replies(rest, room[:0])
		if err := p.complete(now, replies); err != nil {
			return err
		}
		if more = err == nil; !more && !errors.Is(err, errIncomplete) {
			return err
		}
		rest = rest[length:]
	}
	r.in = r.in[:copy(r.in, rest)]
	if len(r.in) == 0 && cap(r.in) > largeBuffer {
		r.in = nil
	}
	return nil
}

// complete gives replies to those who came first.
func (p *pipeline) complete(now time.Time, replies []any) error {
	var room [64]*command
	p.mu.Lock()
	if len(replies) > p.queue.len() {
		p.mu.Unlock()
		return fmt.Errorf("%w: a reply that nobody asked for", errGarbled)
	}
	cmds := p.queue.pop(room[:0], len(replies))
	if len(cmds) > 0 {
		p.flow.heard(now, len(cmds))
	}
	p.mu.Unlock()
	for i, c := range cmds {
		reply, err := outcome(replies[i])
		if meaningOf(err) == replica {
			p.flow.old.Store(true)
		}
		c.complete(reply, err)
	}
	return nil
}
