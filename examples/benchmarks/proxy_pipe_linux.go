package main

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is one direction of a connection. It is open, then silent (nothing more will be
// read), then ended (its destination knows, half a round trip later). When both
// directions are ended, the connection is closed.
type pipe struct {
	from, to int
	back     *pipe
	buffer   []byte // what was read
	written  int    // of the buffer
	due      int    // of the rest may be written
	blocked  bool   // the destination takes nothing now
	watched  bool   // its source, by epoll
	silent   bool
	last     bool // the end is due after these
	ended    bool
}

// receive takes what has arrived, or notes the end, and lets it wait.
func (d *pipe) receive(p *proxy) {
	const most = 16 << 10
	d.makeRoom(most)
	end := len(d.buffer)
	n, err := unix.Read(d.from, d.buffer[end:end+most])
	if err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	n = max(n, 0)
	d.buffer = d.buffer[:end+n]
	if n == 0 {
		d.silent = true
		p.watch(d)
	}
	p.waiting = append(p.waiting, parcel{pipe: d, size: n, due: time.Now().Add(p.half)})
}

func (d *pipe) makeRoom(most int) {
	if d.written == len(d.buffer) || d.ended { // which nobody takes any more
		d.buffer, d.written = d.buffer[:0], 0
	}
	if cap(d.buffer)-len(d.buffer) >= most {
		return
	}
	if d.written >= most {
		d.buffer, d.written = slices.Delete(d.buffer, 0, d.written), 0
	}
	d.buffer = slices.Grow(d.buffer, most)
}

// arrive says that so many bytes may be written, or that the end may be told.
func (d *pipe) arrive(p *proxy, size int) {
	d.due += size
	d.last = size == 0
	d.flush(p)
}

// flush writes what is due. What the destination does not take now waits until it says
// that it can.
func (d *pipe) flush(p *proxy) {
	if d.ended {
		return
	}
	for d.due > 0 {
		n, err := unix.Write(d.to, d.buffer[d.written:d.written+d.due])
		if err == unix.EAGAIN {
			d.block(p, true)
			return
		}
		if err != nil {
			d.end(p)
			return
		}
		d.written, d.due = d.written+n, d.due-n
	}
	d.block(p, false)
	if d.last {
		d.end(p)
	}
}

func (d *pipe) block(p *proxy, blocked bool) {
	if d.blocked != blocked {
		d.blocked = blocked
		p.watch(d.back)
	}
}

func (d *pipe) end(p *proxy) {
	if d.ended {
		return
	}
	d.ended = true
	d.block(p, false)
	_ = unix.Shutdown(d.to, unix.SHUT_WR) //nolint:errcheck // it may be gone
	if d.back.ended {
		p.hangUp(d)
	}
}
