package ruleset

import (
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch is [Open], and reloads whenever the content of the file has changed, until
// [Live.Close]. It sees a file that is written in place, replaced by renaming,
// deleted and written again, and one behind symbolic links that are replaced, as
// Kubernetes does with a ConfigMap (but not with one mounted by subPath, which
// Kubernetes never updates).
//
// A change is noticed at once, where the system tells of it, and taken into force when
// the file has not changed any more for 100 ms; or after 1 s, also if it is absent or
// empty. Besides, the file is looked at every 10 s, for what the system does not tell,
// such as changes on a network drive. Nobody is told of a content that is the same as
// before. What is refused goes to the observers of [WithReloadObserver], or without
// one to [slog.Default].
func Watch(path string, opts ...Option) (*Live, error) {
	return watch(path, watchConfig{
		open: fsnotify.NewWatcher, quiet: 100 * time.Millisecond, limit: time.Second, poll: 10 * time.Second,
	}, opts...)
}

// watchConfig is what tests change.
type watchConfig struct {
	open  func() (*fsnotify.Watcher, error)
	quiet time.Duration // how long a content must stay before it is taken into force
	limit time.Duration // how long to wait for that
	poll  time.Duration // how often to look without being told
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
	if !found.same(l.last) {
		l.report(l.attempt(found))
	}
	return true
}

// report logs a refusal that nobody else hears of.
func (l *Live) report(err error) {
	if err != nil && len(l.observers) == 0 {
		slog.Error("lock rules refused: the old ones stay in force", "file", l.path, "error", err)
	}
}

// settled waits until the file seems to be complete: a moment later it still reads the
// same. That is asked of the content and not of the events, of which a busy directory
// has no end. A file that is absent or empty is most likely about to be written, and
// gets all the time there is. It is false when the watching has ended.
func (w *watcher) settled() (content, bool) {
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	quiet := time.NewTicker(w.quiet)
	defer quiet.Stop()
	before := w.look()
	for {
		select {
		case <-w.live.stop:
			return content{}, false
		case <-limit.C:
			return w.look(), true
		case <-quiet.C:
		}
		found := w.look()
		if !found.isNothing() && found.same(before) {
			return found, true
		}
		before = found
	}
}

// look reads the file. What it depends on is watched before that, so that nothing is
// missed.
func (w *watcher) look() content {
	w.watch(w.live.file)
	return readContent(w.live.file)
}
