package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/notify"
)

// errClosed is the error of [Live.Reload] after [Live.Close].
var errClosed = errors.New("ruleset: closed: the rules in force stay, and the file is not loaded again")

// Reload is one attempt to take a file into force.
type Reload struct {
	File string
	Hash string    // of the content: the first 12 hexadecimal digits of its SHA-256; empty if it could not be read
	Time time.Time // of the attempt
	Set  *Set      // now in force; nil if the first attempt failed
	Old  *Set      // in force before; nil at the first attempt
	Err  error     // why the new content was refused; nil if it is in force
}

// Live is a set that is loaded from a file and replaced when the file changes. It is
// a [Provider] and safe for concurrent use.
//
// A file that is refused leaves the old set in force. It is refused when it cannot be
// read, when it is wrong, when it gives a rule that is in force another lock (see
// [CompareLocks]), or when a subscriber cannot work with it. What is refused is not tried
// again until the content changes or [Live.Reload] is called.
type Live struct {
	path    string // as given, for messages
	file    string // the same from the root
	opts    []Option
	panics  notify.Panics // of observers
	current atomic.Pointer[Set]

	calls       sync.Mutex    // held while subscribers are called, so that calls never overlap
	subscribers []*subscriber // guarded by calls: in the order in which they came

	stop     chan struct{} // closed by Close
	stopping sync.Once
	watching sync.WaitGroup

	listening sync.Mutex
	listeners []*listener // guarded by listening
	inForce   Reload      // guarded by listening: the attempt that took current into force

	turn    sync.Mutex // one attempt after the other; readers of current never need it
	closed  bool       // guarded by turn
	last    content    // guarded by turn: what was attempted last
	alarmed bool       // guarded by turn: a refusal was logged, and not its end
}

var _ Provider = (*Live)(nil)

// Open loads a rule file, which [Live.Reload] loads again. A file that is refused is
// an error: see [Load].
func Open(path string, opts ...Option) (*Live, error) {
	file, err := fromRoot(path)
	if err != nil {
		return nil, fmt.Errorf("ruleset: %w", err)
	}
	l := &Live{
		path: path, file: file, opts: opts,
		stop: make(chan struct{}),
	}
	for _, o := range newConfig(opts).observers {
		l.listeners = append(l.listeners, &listener{observe: o})
	}
	if err := l.Reload(); err != nil {
		return nil, err
	}
	return l, nil
}

// Observe adds an observer beside those of [WithReloadObserver], and notifies it of the content
// in force. Observe does nothing if it was called with the same pointer before. Adapters call it with the observers of
// their lock client, also from an observer or a subscriber: it does not wait for a reload that is
// going on.
func (l *Live) Observe(observe *func(Reload)) {
	first, inForce := l.addListener(observe)
	if first == nil {
		return
	}
	defer first.calls.Unlock()
	l.notify(first, inForce)
}

// addListener adds an observer, whose calls are locked until it was notified of the content in
// force. It returns nil for one that is there already.
func (l *Live) addListener(observe *func(Reload)) (*listener, Reload) {
	l.listening.Lock()
	defer l.listening.Unlock()
	if slices.ContainsFunc(l.listeners, func(known *listener) bool { return known.observe == observe }) {
		return nil, Reload{}
	}
	added := &listener{observe: observe}
	added.calls.Lock()
	l.listeners = append(l.listeners, added)
	return added, l.inForce
}

func (l *Live) notify(to *listener, r Reload) {
	notify.Each(&l.panics, []func(Reload){*to.observe}, func(observe func(Reload)) { observe(r) })
}

// observed reports whether there are observers.
func (l *Live) observed() bool {
	l.listening.Lock()
	defer l.listening.Unlock()
	return len(l.listeners) > 0
}

// conclude notes how an attempt ended, and returns the observers that are to be notified of it.
func (l *Live) conclude(r Reload) []*listener {
	l.listening.Lock()
	defer l.listening.Unlock()
	if r.Err == nil {
		l.inForce = r
	}
	return slices.Clone(l.listeners)
}

// listener is an observer that is notified of one attempt after the other.
type listener struct {
	observe *func(Reload)
	calls   sync.Mutex // held while observe is called
}

// Current is the set in force. It neither waits nor allocates.
func (l *Live) Current() *Set { return l.current.Load() }

// Reload loads the file now, whether it changed or not. The error says why it was
// refused. errClosed after Close.
func (l *Live) Reload() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.closed {
		return errClosed
	}
	return l.attempt(readContent(l.file))
}

// Close ends the watching, and waits for it and for a reload that is going on: then no
// subscriber and no observer is called any more. The set in force stays. Close may be
// called again; the error is always nil.
func (l *Live) Close() error {
	l.stopping.Do(func() { close(l.stop) })
	l.watching.Wait()
	l.turn.Lock()
	defer l.turn.Unlock()
	l.closed = true
	return nil
}

// attempt tries to take c into force. The caller has the turn.
func (l *Live) attempt(c content) error {
	l.last = c
	old := l.Current()
	next, err := l.load(c)
	if err == nil {
		err = l.replace(next)
	}
	r := Reload{File: l.path, Hash: c.hash(), Time: c.read, Set: l.Current(), Old: old, Err: err}
	listeners := l.conclude(r)
	if len(listeners) == 0 {
		l.logApplied(r)
	}
	for _, to := range listeners {
		to.calls.Lock()
		l.notify(to, r)
		to.calls.Unlock()
	}
	return err
}

// load makes a set of the content. A panic in an option is an error.
func (l *Live) load(c content) (next *Set, err error) {
	if c.err != nil {
		return nil, fmt.Errorf("ruleset: %w", c.err)
	}
	defer caught("loading the file", &err)
	return Load(l.path, c.text, l.opts...)
}
