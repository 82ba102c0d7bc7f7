package main

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is one direction of a connection. It is open, then silent (its source sent the end), then ended (its destination
// received the end, half a round trip later). The connection is closed when both directions have ended.
type pipe struct {
	from, to int
	back     *pipe
	buffer   []byte // bytes that were read
	written  int    // how many bytes of the buffer were written
	due      int    // how many of the remaining bytes may be written
	blocked  bool   // the destination accepts no bytes now
	watched  bool   // epoll watches the source
	silent   bool
	last     bool // the end is due after the remaining bytes
	ended    bool
}

// receive reads arrived bytes, or the end, and queues them.
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
	if d.written == len(d.buffer) || d.ended { // the destination accepts no more bytes
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

// arrive releases a number of bytes, or the end, for writing.
func (d *pipe) arrive(p *proxy, size int) {
	d.due += size
	d.last = size == 0
	d.flush(p)
}

// flush writes the bytes that are due. Bytes that the destination does not accept wait until it is writable.
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
	_ = unix.Shutdown(d.to, unix.SHUT_WR) //nolint:errcheck // it may be closed
	if d.back.ended {
		p.hangUp(d)
	}
}
