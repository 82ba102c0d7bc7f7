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
	proxy  *Proxy
	match  Match
	action action
	delay  time.Duration // of holdRequest and holdReply; 0 is until released
	says   string        // of answerError

	first    chan struct{} // closed at the first hit
	released chan struct{} // closed by Release and Remove
	once     sync.Once

	// Guarded by proxy.mu.
	hits     int
	executed int
}

// Hits says how many commands the rule applied to so far.
func (r *Rule) Hits() int {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return r.hits
}

// Executed says how many of these commands Redis has answered so far, whether the
// client gets the answer or not. It does not count for [Proxy.Watch].
func (r *Rule) Executed() int {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return r.executed
}

// Hit is closed when the rule applies for the first time: when the proxy has read
// the command, before it does anything with it.
func (r *Rule) Hit() <-chan struct{} { return r.first }

// Release lets go what the rule holds, now and later: a Hold rule then changes
// nothing any more, but goes on counting.
func (r *Rule) Release() { r.once.Do(func() { close(r.released) }) }

// Remove ends the rule; what it holds is let go.
func (r *Rule) Remove() {
	r.proxy.remove(r)
	r.Release()
}

// wait keeps the caller for as long as the rule says. It is false when the proxy
// was closed meanwhile.
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

// hit counts an application; the caller holds proxy.mu.
func (r *Rule) hit() {
	if r.hits == 0 {
		close(r.first)
	}
	r.hits++
}

func (r *Rule) answered() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.executed++
}
