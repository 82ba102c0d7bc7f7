package ruleset

import (
	"errors"
	"time"
)

// Reload is one attempt to take a file into force.
type Reload struct {
	File string
	Hash string    // of the content: the first 12 hexadecimal digits of its SHA-256; empty if it could not be read
	Time time.Time // of the attempt
	Set  *Set      // now in force
	Err  error     // why the new content was refused; nil if it is in force
}

// ReloadObserver is told of every attempt, the first one included. It is called
// synchronously and must not block.
type ReloadObserver interface {
	ObserveReload(r Reload)
}

// Live is a set that is loaded from a file and replaced when the file changes. It is
// a [Provider] and safe for concurrent use.
type Live struct{}

// Open loads a rule file, which [Live.Reload] loads again.
func Open(path string, opts ...Option) (*Live, error) { return nil, errors.New("not there yet") }

// Watch is [Open], and reloads whenever the content of the file has changed.
func Watch(path string, opts ...Option) (*Live, error) { return nil, errors.New("not there yet") }

// Current is the set in force.
func (l *Live) Current() *Set { return nil }

// Subscribe implements [Provider].
func (l *Live) Subscribe(prepare Prepare) (cancel func(), err error) { return func() {}, nil }

// Reload loads the file now.
func (l *Live) Reload() error { return nil }

// Close ends the watching and waits for it.
func (l *Live) Close() error { return nil }
