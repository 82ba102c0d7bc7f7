package faultproxy

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// link is one connection of a client with the corresponding connection to Redis. Two goroutines serve it,
// one for each direction. The goroutine for commands decides when the link is closed: a command that was read
// reaches Redis even if the client closed its connection.
type link struct {
	host     host
	closing  <-chan struct{} // closed when the proxy closes
	client   net.Conn
	upstream net.Conn
	inflight *inflight
	silent   atomic.Bool   // the link lost something in a black hole, and nothing passes from then on
	mute     atomic.Bool   // a reply was dropped, and the client gets nothing from then on
	ended    chan struct{} // closed when no more replies will come
}

// host is the proxy of a link.
type host interface {
	match(cmd []string) *Rule // counts a command and returns the rule that applies to it, nil for none
	swallows() bool           // reports whether the proxy is a black hole
	forget(l *link)           // removes a closed link
}

func newLink(h host, closing <-chan struct{}, client, upstream net.Conn) *link {
	return &link{
		host: h, closing: closing, client: client, upstream: upstream,
		inflight: newInflight(), ended: make(chan struct{}),
	}
}

// forwardCommands forwards commands to Redis until the client disconnects or a rule ends the connection. Then
// it waits for the outstanding replies and closes the link.
func (l *link) forwardCommands() {
	defer l.host.forget(l)
	defer l.close()
	in := bufio.NewReader(l.client)
	for l.forwardCommand(in) {
	}
	l.inflight.finish()
	select {
	case <-l.inflight.drained:
	case <-l.ended:
	case <-l.closing:
	}
	l.cut()
	l.linger()
}

// forwardCommand forwards one command. It returns false to close the connection.
func (l *link) forwardCommand(in *bufio.Reader) bool {
	cmd, err := readCommand(in)
	if err != nil {
		return false
	}
	if l.swallows() {
		_, _ = io.Copy(io.Discard, in) // until the client closes
		return false
	}
	rule := l.host.match(cmd.args)
	if rule != nil && rule.action == dropRequest {
		return false
	}
	if rule != nil && rule.action == holdRequest && !rule.wait(l.closing) {
		return false
	}
	if rule != nil && rule.action == answerError {
		cmd = ping()
	}
	l.inflight.recordCommand(cmd.args, rule)
	_, err = l.upstream.Write(cmd.raw)
	return err == nil
}

// ping returns the command that Redis gets instead of a command that the proxy answers with an error.
func ping() command { return command{raw: []byte("*1\r\n$4\r\nPING\r\n"), args: []string{"PING"}} }

// forwardReplies forwards replies and messages to the client.
func (l *link) forwardReplies() {
	defer close(l.ended)
	in := bufio.NewReader(l.upstream)
	for {
		v, err := readValue(in)
		if err != nil {
			break
		}
		l.forwardReply(v)
		l.inflight.recordDelivery()
	}
	if !l.swallows() { // a black hole also hides the end of the connection
		l.cut()
	}
}

func (l *link) forwardReply(v value) {
	rule := l.inflight.matchReply(v)
	if rule != nil && rule.action != answerError {
		rule.recordAnswer()
	}
	switch {
	case rule != nil && rule.action == answerError:
		v.raw = []byte("-" + rule.says + "\r\n")
	case rule != nil && rule.action == dropReply:
		l.mute.Store(true)
		l.cut()
	case rule != nil && rule.action == holdReply:
		rule.wait(l.closing)
	}
	if l.mute.Load() || l.swallows() {
		return
	}
	_, _ = l.client.Write(v.raw) // the other goroutine notices that the client disconnected
}

// swallows reports whether the proxy is a black hole, or was when something should have passed the link.
func (l *link) swallows() bool {
	if l.host.swallows() {
		l.silent.Store(true)
	}
	return l.silent.Load()
}

// cut closes the connection to the client: the client gets everything that was written and then
// EOF. Its later commands are not read.
func (l *link) cut() {
	_ = l.client.SetReadDeadline(longAgo())
	if half, ok := l.client.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = l.client.Close()
}

// linger reads from the client until the client closes the connection, for at most a second. Closing a TCP
// connection with unread data resets it, and a reset discards replies that the client has not read yet.
func (l *link) linger() {
	_ = l.client.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, l.client)
}

// close closes both sides.
func (l *link) close() {
	_ = l.client.Close()
	_ = l.upstream.Close()
}

// longAgo returns a deadline that has passed, even on the fake clock of a test.
func longAgo() time.Time { return time.Unix(1, 0) }
