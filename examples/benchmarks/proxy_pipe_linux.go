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
	silent   bool
	last     bool // the end is due after these
	ended    bool
}

// receive takes what has arrived, or notes the end, and lets it wait.
func (in *pipe) receive(p *proxy) {
	const most = 16 << 10
	in.makeRoom(most)
	end := len(in.buffer)
	n, err := unix.Read(in.from, in.buffer[end:end+most])
	if err == unix.EAGAIN || err == unix.EINTR { //nolint:errorlint // an errno, never wrapped
		return
	}
	n = max(n, 0)
	in.buffer = in.buffer[:end+n]
	if n == 0 {
		in.silent = true
		p.watch(in)
	}
	p.waiting = append(p.waiting, parcel{pipe: in, size: n, due: time.Now().Add(p.half)})
}

func (in *pipe) makeRoom(most int) {
	if in.written == len(in.buffer) || in.ended { // which nobody takes any more
		in.buffer, in.written = in.buffer[:0], 0
	}
	if cap(in.buffer)-len(in.buffer) >= most {
		return
	}
	if in.written >= most {
		in.buffer, in.written = slices.Delete(in.buffer, 0, in.written), 0
	}
	in.buffer = slices.Grow(in.buffer, most)
}

// arrive says that so many bytes may be written, or that the end may be told.
func (out *pipe) arrive(p *proxy, size int) {
	out.due += size
	out.last = size == 0
	out.flush(p)
}

// flush writes what is due. What the destination does not take now waits until it says
// that it can.
func (out *pipe) flush(p *proxy) {
	for out.due > 0 && !out.ended {
		n, err := unix.Write(out.to, out.buffer[out.written:out.written+out.due])
		if err == unix.EAGAIN { //nolint:errorlint // an errno, never wrapped
			out.block(p, true)
			return
		}
		if err != nil {
			out.end(p)
			return
		}
		out.written, out.due = out.written+n, out.due-n
	}
	out.block(p, false)
	if out.last {
		out.end(p)
	}
}

func (out *pipe) block(p *proxy, blocked bool) {
	if out.blocked != blocked {
		out.blocked = blocked
		p.watch(out.back)
	}
}

func (out *pipe) end(p *proxy) {
	if out.ended {
		return
	}
	out.ended = true
	_ = unix.Shutdown(out.to, unix.SHUT_WR)
	if out.back.ended {
		p.hangUp(out)
	}
}
