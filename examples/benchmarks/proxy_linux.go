package main

import (
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// proxy makes Redis as far away as a network would: every byte arrives half of the
// round trip later than without it, in order, at any bandwidth. Opening a connection
// costs nothing, what is said on it first does.
//
// One thread does everything, with epoll and a timer of the kernel: [time.Sleep]
// rounds up to a millisecond when the process is idle, a goroutine per connection
// and direction would take the CPU that Redis and the callers need. As all bytes wait
// equally long, what waits is one queue in the order of arrival.
type proxy struct {
	half                          time.Duration
	target                        unix.SockaddrInet4
	poll, timer, listener, closer int
	pipes                         map[int]*pipe // by source
	waiting                       []parcel      // by due time
	armed                         time.Time
	early                         time.Duration // the timer is set by so much, see alarm
	counts                        punctuality
	stopped                       chan struct{}
}

// parcel is what arrived at once: so many bytes, or the end.
type parcel struct {
	pipe *pipe
	size int
	due  time.Time
}

// startProxy listens on a free port for connections to target. stop closes all, and
// says how punctual the proxy was.
func startProxy(target string, roundTrip time.Duration) (addr string, stop func() punctuality, err error) {
	p := &proxy{half: roundTrip / 2, pipes: map[int]*pipe{}, stopped: make(chan struct{})}
	if p.target, err = resolve(target); err != nil {
		return "", nil, err
	}
	port, err := p.open()
	if err != nil {
		return "", nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	go p.run()
	stop = func() punctuality {
		_, _ = unix.Write(p.closer, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // a counter at 0 takes it
		<-p.stopped
		return p.counts
	}
	return fmt.Sprintf("127.0.0.1:%d", port), stop, nil
}

func resolve(target string) (to unix.SockaddrInet4, err error) {
	addr, err := net.ResolveTCPAddr("tcp4", target)
	if err != nil {
		return to, err
	}
	to.Port = addr.Port
	copy(to.Addr[:], addr.IP.To4())
	return to, nil
}

// open makes the four descriptors that the loop waits for.
func (p *proxy) open() (port int, err error) {
	if p.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return 0, err
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return 0, err
	}
	if p.closer, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return 0, err
	}
	if p.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	if err := unix.Bind(p.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := unix.Listen(p.listener, 1024); err != nil {
		return 0, err
	}
	for _, fd := range []int{p.timer, p.closer, p.listener} {
		// Edge-triggered, so that nobody has to read the timer.
		if err := p.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET); err != nil {
			return 0, err
		}
	}
	name, err := unix.Getsockname(p.listener)
	if err != nil {
		return 0, err
	}
	return name.(*unix.SockaddrInet4).Port, nil //nolint:errcheck,forcetypeassert // it was bound to such an address
}

func (p *proxy) control(how, fd int, events uint32) error {
	return unix.EpollCtl(p.poll, how, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// watch asks for the events of a pipe's source that matter now: bytes to read, and room
// for what goes back. Of a source without any, hang-ups would be told again and again.
func (p *proxy) watch(in *pipe) {
	var events uint32
	if !in.silent {
		events |= unix.EPOLLIN
	}
	if in.back.blocked {
		events |= unix.EPOLLOUT
	}
	var err error
	switch {
	case events == 0:
		err = p.control(unix.EPOLL_CTL_DEL, in.from, 0)
	case in.watched:
		err = p.control(unix.EPOLL_CTL_MOD, in.from, events)
	default:
		err = p.control(unix.EPOLL_CTL_ADD, in.from, events)
	}
	if err != nil {
		panic(err) // only for bad arguments
	}
	in.watched = events != 0
}

// run is the loop of the proxy's thread.
func (p *proxy) run() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the loop
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	//nolint:errcheck // where it is not allowed, it is as late as the report says
	_ = unix.SchedSetAttr(0, &first, 0) // before Redis and callers: a network needs no core
	defer close(p.stopped)
	defer p.close()
	events := make([]unix.EpollEvent, 128)
	for wait := -1; ; wait = p.deliver() {
		n, err := unix.EpollWait(p.poll, events, wait)
		if err != nil && err != unix.EINTR {
			panic(err) // only for bad arguments
		}
		for _, event := range events[:max(n, 0)] {
			if int(event.Fd) == p.closer {
				return
			}
			p.handle(int(event.Fd), event.Events)
		}
	}
}

func (p *proxy) handle(fd int, events uint32) {
	if fd == p.listener {
		for p.accept() {
		}
		return
	}
	if fd == p.timer {
		p.alarm()
		return
	}
	in := p.pipes[fd]
	if in == nil {
		return // closed a moment ago
	}
	if events&unix.EPOLLOUT != 0 {
		in.back.flush(p)
	}
	if !in.silent && events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		in.receive(p)
	}
}

// accept takes one connection, and reports whether there was one. What cannot be
// connected to Redis is closed.
func (p *proxy) accept() bool {
	from, _, err := unix.Accept4(p.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return false
	}
	to, err := p.connect(from)
	if err != nil {
		_ = unix.Close(from)
		return true
	}
	out, back := &pipe{from: from, to: to}, &pipe{from: to, to: from}
	out.back, back.back = back, out
	p.pipes[from], p.pipes[to] = out, back
	p.watch(out)
	p.watch(back)
	return true
}

func (p *proxy) connect(from int) (int, error) {
	to, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = unix.Connect(to, &p.target)
	for _, fd := range []int{from, to} {
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
	}
	if err != nil {
		_ = unix.Close(to)
	}
	return to, err
}

// deliver hands over what is due, sets the timer for what is next, and returns how long
// to wait: 0 when that is a moment away, else until something happens.
func (p *proxy) deliver() int {
	now := time.Now()
	for len(p.waiting) > 0 && !p.waiting[0].due.After(now) {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.counts.add(now.Sub(next.due))
		next.pipe.arrive(p, next.size)
	}
	if len(p.waiting) == 0 {
		return -1
	}
	const moment = 20 * time.Microsecond
	due := p.waiting[0].due
	left := time.Until(due)
	if left <= moment {
		return 0
	}
	if !due.Equal(p.armed) {
		p.armed = due
		in := max(left-p.early, 1) // 0 would mean never
		at := unix.ItimerSpec{Value: unix.NsecToTimespec(in.Nanoseconds())}
		if err := unix.TimerfdSettime(p.timer, 0, &at, nil); err != nil {
			panic(err) // only for bad arguments
		}
	}
	return -1
}

// alarm learns from the timer by how much it is late. On an idle virtual machine that is
// up to 0.1 ms, on a busy one next to nothing. It is set earlier by what makes it come
// too early as often as too late; who is too early waits for the rest.
func (p *proxy) alarm() {
	const step = time.Microsecond
	if time.Now().Before(p.armed) {
		p.early = max(p.early-step, 0)
	} else {
		p.early = min(p.early+step, 200*step)
	}
	p.armed = time.Time{}
}

// hangUp closes a connection.
func (p *proxy) hangUp(of *pipe) {
	of.silent, of.back.silent = true, true
	for _, fd := range []int{of.from, of.to} {
		delete(p.pipes, fd)
		_ = unix.Close(fd)
	}
}

func (p *proxy) close() {
	for fd := range p.pipes {
		_ = unix.Close(fd)
	}
	for _, fd := range []int{p.listener, p.timer, p.closer, p.poll} {
		_ = unix.Close(fd)
	}
}
