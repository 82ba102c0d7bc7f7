package faultproxy

import (
	"sync"
	"time"
)

type action uint8

const (
	watch action = iota
	dropRequest
	holdRequest
	dropReply
	holdReply
	answerError
)

// Rule is one fault of a proxy. Its methods are safe for concurrent use.
type Rule struct {
	match  Match
	action action
	delay  time.Duration // of holdRequest and holdReply; 0 waits for Release
	says   string        // of answerError

	first    chan struct{} // closed at the first hit
	released chan struct{} // closed by Release and Remove
	once     sync.Once

	remove func() // takes it from the proxy

	mu       *sync.Mutex // of the proxy; guards the rest
	hits     int
	executed int
}

// Hits returns how many commands the rule has applied to so far.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Executed returns how many of these commands Redis has answered so far, whether or not the client
// gets the answer. It does not count for [Proxy.Watch].
func (r *Rule) Executed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.executed
}

// Hit returns a channel that is closed when the rule applies for the first time: when the proxy has
// read the command, before it does anything with it.
func (r *Rule) Hit() <-chan struct{} { return r.first }

// Release lets everything go that the rule holds, now and later. A Hold rule then changes nothing any
// more, but goes on counting.
func (r *Rule) Release() { r.once.Do(func() { close(r.released) }) }

// Remove ends the rule, and lets everything go that it holds.
func (r *Rule) Remove() {
	r.remove()
	r.Release()
}

// wait waits as long as the rule says. It returns false if the proxy was closed.
func (r *Rule) wait(closing <-chan struct{}) bool {
	var over <-chan time.Time
	if r.delay > 0 {
		timer := time.NewTimer(r.delay)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-r.released:
	case <-closing:
		return false
	}
	return true
}

// hit counts an application. The mutex is held.
func (r *Rule) hit() {
	if r.hits == 0 {
		close(r.first)
	}
	r.hits++
}

func (r *Rule) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.executed++
}
