package ruleset

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// errClosed is returned by [Live.Reload] after [Live.Close].
var errClosed = errors.New("ruleset: closed: the rules in force stay, and the file is not loaded again")

// Live is a set that is loaded from a file and replaced when the file changes. It is a [Provider]
// and safe for concurrent use.
//
// A file that is refused leaves the old set in force. It is refused if it cannot be read, if it
// has a mistake, if it gives another lock to a rule in force (see [CompareLocks]), or if a
// subscriber cannot work with it. Refused content is not tried again until it changes or
// [Live.Reload] is called.
type Live struct {
	path    string // as given, for messages
	file    string // the same, absolute
	opts    []Option
	current atomic.Pointer[Set]

	subscribers subscribers
	observers   observers

	stop     chan struct{} // closed by Close
	stopping sync.Once
	watching sync.WaitGroup

	turn    sync.Mutex // held by one attempt at a time; readers of current never need it
	closed  bool       // guarded by turn
	last    content    // guarded by turn: the last content that was attempted
	alarmed bool       // guarded by turn: the last refusal was logged, so the next load that succeeds is logged, too
}

var _ Provider = (*Live)(nil)

// Open loads a rule file. [Live.Reload] loads it again. A file that is refused is
// an error: see [Load].
func Open(path string, opts ...Option) (*Live, error) {
	file, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("ruleset: %w", err)
	}
	l := &Live{path: path, file: file, opts: opts, stop: make(chan struct{})}
	for _, o := range newConfig(opts).observers {
		l.observers.list = append(l.observers.list, &observer{observe: o})
	}
	if err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Current returns the set in force. It neither waits nor allocates.
func (l *Live) Current() *Set { return l.current.Load() }

// Subscribe implements [Provider]. It waits while another subscriber prepares or
// commits, but not for the file. It returns a panic in prepare or commit as an error.
//
// In a commit, Current is the set that is committed.
//
// cancel may be called at any time, also from prepare and commit, and any number of times. It
// does not wait for a running prepare. The error of that prepare is ignored, and its commit is
// not called.
func (l *Live) Subscribe(prepare Prepare) (cancel func(), err error) {
	return l.subscribers.add(prepare, l.Current)
}

// Observe adds an observer to the observers of [WithReloadObserver] and notifies it of the content in
// force. It does nothing if it was called with the same pointer before. Adapters call it with the
// observers of their lock client. It may be called from an observer or a subscriber, because it does not
// wait for a running reload.
func (l *Live) Observe(observe *func(Reload)) { l.observers.add(observe) }

// Reload loads the file now, even if it has not changed. The error gives the reasons if the file
// is refused. After Close, Reload returns an error and does not load the file.
func (l *Live) Reload() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.closed {
		return errClosed
	}
	return l.attempt(readContent(l.file))
}

// Close stops watching the file. It waits until the watcher has stopped and a running reload is
// done. After Close returns, no subscriber or observer is called. The set in force stays. Close
// may be called again; the error is always nil.
func (l *Live) Close() error {
	l.stopping.Do(func() { close(l.stop) })
	l.watching.Wait()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.closed = true
	return nil
}

// attempt tries to bring c into force. The caller holds turn.
func (l *Live) attempt(c content) error {
	l.last = c
	old := l.Current()
	next, err := l.load(c)
	if err == nil {
		err = l.replace(next)
	}
	r := Reload{File: l.path, Hash: c.hash(), Time: c.read, Set: l.Current(), Old: old, Err: err}
	if !l.observers.notify(r) {
		l.logApplied(r)
	}
	return err
}

// load builds a set from the content. It returns a panic in an option as an error.
func (l *Live) load(c content) (next *Set, err error) {
	if c.err != nil {
		return nil, fmt.Errorf("ruleset: %w", c.err)
	}
	defer recoverAs("loading the file", &err)
	return Load(l.path, c.text, l.opts...)
}

// replace brings next into force. If it returns an error, nothing changed. The caller holds turn.
//
// It compares the locks after all subscribers have prepared. The subscribers report mistakes in keys first, because
// their message is better than a report of a changed lock. Adapters compare the locks of their routes, too.
func (l *Live) replace(next *Set) error {
	return l.subscribers.replace(next, func() error {
		refused, _ := CompareLocks(l.Current(), next)
		if err := Invalid(refused...); err != nil {
			return err
		}
		l.current.Store(next)
		return nil
	})
}

// logApplied logs that a changed file is in force. It also logs the calls that run unlocked from now on and
// the end of a logged refusal. It is called when there are no observers.
func (l *Live) logApplied(r Reload) {
	if r.Err != nil {
		return
	}
	list, ended := r.Unlocked(), ""
	if l.alarmed {
		ended = "; the refusal has ended"
	}
	switch {
	case len(list) > 0:
		slog.Error("lock rules loaded, and endpoints run unlocked"+ended, "file", r.File, "hash", r.Hash, "rules", len(r.Set.Rules()), "unlocked", list)
	case r.Old != nil:
		slog.Info("lock rules loaded"+ended, "file", r.File, "hash", r.Hash, "rules", len(r.Set.Rules()))
	}
	l.alarmed = false
}
