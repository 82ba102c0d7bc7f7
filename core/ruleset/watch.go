package ruleset

import (
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch is [Open], and reloads whenever the content of the file has changed, until
// [Live.Close]. It sees a file that is replaced by renaming, written in place, deleted
// and written again, and one behind symbolic links that are replaced, as Kubernetes
// does with a ConfigMap (but not with one mounted by subPath, which Kubernetes never
// updates).
//
// Replace the file by renaming a complete one: nobody can tell half a file from a whole
// one, and half a list of rules is a list of rules. A change is noticed at once, where
// the system tells of it. Another file in the place of the old one is taken into force
// when its content has stayed the same for 100 ms. A content that is written in place,
// or after the file was absent or empty, must stay the same for 1 s, and so must the
// absence of the file before it is reported. A file that never stays the same for so
// long is never taken; [Live.Reload] waits for nothing.
//
// Besides, the file is looked at every 10 s, for what the system does not tell, such as
// changes on a network drive, or a directory further up that is replaced by renaming.
// Nobody is told of a content that is the same as before. What is refused, and what takes
// locks away ([Reload.Unlocked]), goes to the observers of [WithReloadObserver], or
// without one to [slog.Default] as an error; so does the end of a refusal, as information.
func Watch(path string, opts ...Option) (*Live, error) {
	return watch(path, watchConfig{
		open: fsnotify.NewWatcher, replaced: 100 * time.Millisecond, written: time.Second, poll: 10 * time.Second,
	}, opts...)
}

// watchConfig is what tests change.
type watchConfig struct {
	open     func() (*fsnotify.Watcher, error)
	replaced time.Duration // how long the content of another file must stay the same
	written  time.Duration // how long one must that may be about to be written
	poll     time.Duration // how often to look without being told
}

func watch(path string, cfg watchConfig, opts ...Option) (*Live, error) {
	l, err := Open(path, opts...)
	if err != nil {
		return nil, err
	}
	w := &watcher{watchConfig: cfg, live: l, notifier: newNotifier(cfg.open)}
	l.watching.Go(w.run)
	return l, nil
}

// watcher is the goroutine that watches the file of a [Live] set.
type watcher struct {
	watchConfig
	*notifier
	live *Live
}

// run looks first: the file may have changed since it was opened.
func (w *watcher) run() {
	defer w.notifier.close()
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

// follow takes found into force unless it is what was tried last. It is false when
// somebody has read the file later: then it must be looked at again.
func (l *Live) follow(found content) bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	if found.read.Before(l.last.read) {
		return false
	}
	if found.same(l.last) {
		l.last = found // it may be another file
	} else {
		l.report(l.attempt(found))
	}
	return true
}

// tried is what was attempted last.
func (l *Live) tried() content {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.last
}

// report logs a refusal that nobody else hears of.
func (l *Live) report(err error) {
	if err != nil && len(l.observers) == 0 {
		slog.Error("lock rules refused: the old ones stay in force", "file", l.path, "error", err)
		l.alarmed = true
	}
}

// settled waits until the file seems to be complete: until it has read the same for
// long enough. That is asked of the content and not of the events, of which a busy
// directory has no end. It is false when the watching has ended.
func (w *watcher) settled() (content, bool) {
	tried := w.live.tried()
	before, now := tried, w.look()
	pause := time.NewTimer(w.replaced)
	defer pause.Stop()
	for ; ; pause.Reset(w.replaced) {
		select {
		case <-w.live.stop:
			return content{}, false
		case <-pause.C:
		}
		found := w.look()
		if !found.same(now) || !found.isFileOf(now) {
			before, now = now, found
			continue
		}
		if now.same(tried) || now.replaces(before) || found.read.Sub(now.read) >= w.written {
			return found, true
		}
	}
}

// look reads the file. What it depends on is watched before that, so that nothing is
// missed.
func (w *watcher) look() content {
	w.watch(w.live.file)
	return readContent(w.live.file)
}
