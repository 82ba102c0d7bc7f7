package main

import (
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// proxy simulates a network: every byte arrives half of the round trip later, in order and without a limit of
// bandwidth. Opening a connection takes no extra time; the first bytes on it do.
//
// One thread does everything, with epoll and a timer of the kernel. [time.Sleep] rounds up to a millisecond in an
// idle process, and a goroutine for each connection and direction would use the CPU that Redis and the callers
// need. All bytes wait for the same time, so one queue in the order of arrival is enough.
type proxy struct {
	half                          time.Duration
	target                        unix.SockaddrInet4
	poll, timer, listener, closer int
	pipes                         map[int]*pipe // the pipes by source
	waiting                       []parcel      // the parcels, ordered by due time
	armed                         time.Time
	early                         time.Duration // correction of the timer, see alarm
	counts                        punctuality
	stopped                       chan struct{}
}

// parcel is a number of bytes that arrived together, or the end of a direction.
type parcel struct {
	pipe *pipe
	size int
	due  time.Time
}

// startProxy listens on a free port for connections to target. stop closes everything and returns the
// punctuality of the proxy.
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
		_, _ = unix.Write(p.closer, []byte{1, 0, 0, 0, 0, 0, 0, 0}) //nolint:errcheck // the counter is at 0, so the write succeeds
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

// open creates the four descriptors that the loop waits for.
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
		// The timer is edge-triggered, so it need not be read.
		if err := p.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET); err != nil {
			return 0, err
		}
	}
	name, err := unix.Getsockname(p.listener)
	if err != nil {
		return 0, err
	}
	return name.(*unix.SockaddrInet4).Port, nil //nolint:errcheck,forcetypeassert // it is bound to an address of this type
}

func (p *proxy) control(how, fd int, events uint32) error {
	return unix.EpollCtl(p.poll, how, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// watch requests the events of a pipe's source that matter now: bytes to read, and room for bytes in the other
// direction. A source without either is removed, because epoll would report a hang-up again and again.
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
		panic(err) // fails only for bad arguments
	}
	in.watched = events != 0
}

// run is the loop of the thread of the proxy.
func (p *proxy) run() {
	runtime.LockOSThread() // and never unlocked: the thread exits with the loop
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	//nolint:errcheck // without the permission the proxy may be late, and the report shows it
	_ = unix.SchedSetAttr(0, &first, 0) // higher than Redis and callers, because a network needs no core
	defer close(p.stopped)
	defer p.close()
	events := make([]unix.EpollEvent, 128)
	for wait := -1; ; wait = p.deliver() {
		n, err := unix.EpollWait(p.poll, events, wait)
		if err != nil && err != unix.EINTR {
			panic(err) // fails only for bad arguments
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
		return // its connection was just closed
	}
	if events&unix.EPOLLOUT != 0 {
		in.back.flush(p)
	}
	if !in.silent && events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		in.receive(p)
	}
}

// accept accepts a connection and reports whether there was one. It closes a connection that cannot be connected
// to Redis.
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

// deliver writes the parcels that are due and sets the timer for the next one. It returns the time to wait: 0 if the
// next one is due very soon, otherwise until an event.
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
			panic(err) // fails only for bad arguments
		}
	}
	return -1
}

// alarm adjusts the correction of the timer. On an idle virtual machine, the timer is up to 0.1 ms late, on a busy one
// hardly at all. The timer is set earlier by the correction, so that it is early as often as late. If it is early, the
// loop waits for the rest.
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
