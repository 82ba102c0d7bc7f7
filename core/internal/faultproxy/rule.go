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
	delay  time.Duration // delay of holdRequest and holdReply; 0 waits for Release
	says   string        // the message of answerError

	first    chan struct{} // closed at the first hit
	released chan struct{} // closed by Release and Remove
	once     sync.Once

	remove func() // removes the rule from the proxy

	mu       *sync.Mutex // the mutex of the proxy; guards the rest
	hits     int
	executed int
}

// Hits returns the number of commands to which the rule has applied so far.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Executed returns the number of these commands that Redis has answered so far, whether or not the client
// gets the answer. A rule of [Proxy.Watch] does not count answers.
func (r *Rule) Executed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.executed
}

// Hit returns a channel that is closed when the rule applies for the first time: after the proxy read the
// command, and before it does anything with the command.
func (r *Rule) Hit() <-chan struct{} { return r.first }

// Release releases everything that the rule holds now or would hold later. After that a Hold rule has no
// effect except that it counts.
func (r *Rule) Release() { r.once.Do(func() { close(r.released) }) }

// Remove removes the rule and releases everything that it holds.
func (r *Rule) Remove() {
	r.remove()
	r.Release()
}

// wait waits for the delay of the rule. It returns false if the proxy was closed.
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

func (r *Rule) recordAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.executed++
}
