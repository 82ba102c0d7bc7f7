package main

import (
	"io"
	"net"
	"sync"
)

// relay forwards TCP connections to a Redis. While it is down, it cuts them and refuses new ones.
// To the shop, it then looks like a stopped Redis.
type relay struct {
	listener        net.Listener
	network, target string
	running         sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

func newRelay(network, target string) (*relay, error) {
	if network == "" {
		network = "tcp"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, network: network, target: target, conns: map[net.Conn]struct{}{}}
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.pass(near) })
	}
}

// pass copies in both directions until one side closes its connection.
func (r *relay) pass(near net.Conn) {
	defer r.drop(near)
	if !r.keep(near) {
		return
	}
	far, err := net.Dial(r.network, r.target)
	if err != nil {
		return
	}
	defer r.drop(far)
	if !r.keep(far) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far) //nolint:errcheck // the connection has ended
		_ = near.Close()
	})
	_, _ = io.Copy(far, near) //nolint:errcheck // the connection has ended
	_ = far.Close()
	back.Wait()
}

// keep adds a connection that Down must cut. It returns false while the relay is down.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down {
		r.conns[c] = struct{}{}
	}
	return !r.down
}

func (r *relay) drop(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// Down cuts all connections and refuses new ones.
func (r *relay) Down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for c := range r.conns {
		_ = c.Close()
	}
}

// Up forwards connections again.
func (r *relay) Up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.Down()
	r.running.Wait()
}
