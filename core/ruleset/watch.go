package ruleset

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch is [Open], and reloads whenever the content of the file has changed, until
// [Live.Close]. It sees a file that is replaced by renaming, written in place, deleted
// and written again, and a ConfigMap of Kubernetes (but not one that is mounted by
// subPath, which Kubernetes never updates).
//
// Replace the file by renaming a complete one: nobody can tell half a file from a whole
// one, and half a list of rules is a list of rules. A change in the file's folder is
// noticed at once, where the system tells of it, and taken into force when the content has
// stayed the same for 1 s. So must the absence of the file before it is reported. A file
// that never stays the same for so long is never taken; [Live.Reload] waits for nothing.
//
// Besides, the file is looked at every 10 s, for what the system does not tell: changes on
// a network drive, of a symbolic link's target in another folder, or of the folder itself.
// Nobody is notified of a content that is the same as before. What is refused, and what
// lets calls run unlocked ([Reload.Unlocked]), goes to the observers of [WithReloadObserver], or
// without one to [slog.Default] as an error; so does every other load after the first, as
// information.
//
// Inside a [testing/synctest] bubble the test hangs, since no clock goes on there while the
// system is waited for: use [Open], and [Live.Reload] after a change.
func Watch(path string, opts ...Option) (*Live, error) {
	return watch(path, watchConfig{open: fsnotify.NewWatcher, settle: time.Second, poll: 10 * time.Second}, opts...)
}

// watchConfig is what tests change.
type watchConfig struct {
	open   func() (*fsnotify.Watcher, error)
	settle time.Duration // how long a content must stay the same
	poll   time.Duration // how often to look without being notified
}

func watch(path string, cfg watchConfig, opts ...Option) (*Live, error) {
	l, err := Open(path, opts...)
	if err != nil {
		return nil, err
	}
	w := &watcher{watchConfig: cfg, live: l, changed: make(chan struct{}, 1)}
	l.watching.Go(w.run)
	return l, nil
}

// watcher is the goroutine that watches the file of a [Live] set. What happened is not
// told, since the content of the file decides: an event of another file costs one reading.
type watcher struct {
	watchConfig
	live    *Live
	changed chan struct{}     // capacity 1: something happened in the folder
	folder  *fsnotify.Watcher // nil while none could be opened
}

// run looks first: the file may have changed since it was opened.
func (w *watcher) run() {
	defer w.close()
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	for {
		found, ok := w.settled()
		if !ok {
			return
		}
		if !w.live.follow(found) {
			w.wake()
		}
		select {
		case <-w.live.stop:
			return
		case <-w.changed:
		case <-poll.C:
		}
	}
}

// settled waits until the file seems to be complete: until it has read the same for
// long enough, each of many times. That is asked of the content and not of the events, of
// which a busy folder has no end. It is false when the watching has ended.
func (w *watcher) settled() (content, bool) {
	step := w.settle / 10
	pause := time.NewTimer(step)
	defer pause.Stop()
	first := w.look()
	for ; !first.same(w.live.tried()); pause.Reset(step) {
		select {
		case <-w.live.stop:
			return content{}, false
		case <-pause.C:
		}
		found := w.look()
		if !found.same(first) {
			first = found
		} else if found.read.Sub(first.read) >= w.settle {
			return found, true
		}
	}
	return first, true
}

// look reads the file. Its folder is watched before that, so that nothing is missed, and
// anew every time, since it may be another one under the old name. What cannot be watched,
// because of the system's limits or for lack of permission, is found by the poll.
func (w *watcher) look() content {
	if w.folder == nil {
		if files, err := w.open(); err == nil {
			w.folder = files
			w.live.watching.Go(func() { w.forward(files) })
		}
	}
	if w.folder != nil {
		_ = w.folder.Add(filepath.Dir(w.live.file)) //nolint:errcheck // see above
	}
	return readContent(w.live.file)
}

// forward reads what fsnotify says, in a goroutine of its own: fsnotify may hold the
// mutex that Add and Close need until somebody has read an error. An error, such as
// [fsnotify.ErrEventOverflow], means that nobody was notified of something.
func (w *watcher) forward(files *fsnotify.Watcher) {
	for {
		select {
		case _, open := <-files.Events:
			if !open {
				return
			}
		case <-files.Errors: //nolint:errcheck // it is handled by looking; closed right before Events is
		}
		w.wake()
	}
}

// wake tells that something happened. It never blocks.
func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // told already
	}
}

func (w *watcher) close() {
	if w.folder != nil {
		_ = w.folder.Close() //nolint:errcheck // nothing is left to be done with it
	}
}

// follow takes found into force unless it is what was tried last. It is false when
// somebody has read the file later: then it must be looked at again.
func (l *Live) follow(found content) bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	if found.read.Before(l.last.read) {
		return false
	}
	if found.same(l.last) {
		return true
	}
	if err := l.attempt(found); err != nil && !l.observed() {
		slog.LogAttrs(context.Background(), slog.LevelError, "lock rules refused: the old ones stay in force", //nolint:forbidigo // a file changes in no request
			append([]slog.Attr{slog.String("file", l.path)}, LogAttrs(err)...)...)
		l.alarmed = true
	}
	return true
}

// tried is what was attempted last.
func (l *Live) tried() content {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.last
}

// logApplied logs, where no observer is notified of it, that a changed file is in force, with what
// runs unlocked from now on and the end of a refusal that was logged: in one line.
func (l *Live) logApplied(r Reload) {
	if r.Err != nil {
		return
	}
	list, over := r.Unlocked(), ""
	if l.alarmed {
		over = "; the refusal is over"
	}
	switch {
	case len(list) > 0:
		slog.Error("lock rules loaded, and endpoints run unlocked"+over, "file", r.File, "hash", r.Hash, "unlocked", list)
	case r.Old != nil:
		slog.Info("lock rules loaded"+over, "file", r.File, "hash", r.Hash)
	}
	l.alarmed = false
}
