package ruleset

import (
	"context"
	"log/slog"
	"time"
)

// Watch is like [Open], but also reloads the file whenever its content changes, until [Live.Close].
// It reads the file twice a second. So it notices a file that is replaced by renaming, written in
// place, or deleted and written again, on a network drive or behind symbolic links. It notices a
// ConfigMap of Kubernetes unless it is mounted by subPath, which Kubernetes never updates.
//
// Replace the file by renaming a complete one, because half a list of rules is a list of rules, too.
// New content comes into force when it has stayed the same for 1 s, and a missing file is reported
// when it has been missing for 1 s. Content that changes more often never comes into force.
// [Live.Reload] does not wait.
//
// Watch does not report content that is the same as before. It reports a refusal, and calls that run
// unlocked from now on ([Reload.Unlocked]), to [WithReloadObserver] and to the observers of the lock
// clients that use the rules. Without any observer it logs them to [slog.Default] as errors, and every
// other load after the first one as information. [Live.Reload] returns a refusal and does not log it.
func Watch(path string, opts ...Option) (*Live, error) { return watch(path, time.Second, opts...) }

func watch(path string, settle time.Duration, opts ...Option) (*Live, error) {
	l, err := Open(path, opts...)
	if err != nil {
		return nil, err
	}
	l.watching.Go(func() { l.watch(settle) })
	return l, nil
}

// watch reads the file until Close and follows content that has stayed the same for the settle time. It
// compares contents and does not rely on file system events, because a folder may be busy and some drives
// report no events.
func (l *Live) watch(settle time.Duration) {
	turns := time.NewTicker(settle / 2)
	defer turns.Stop()
	last, again := content{}, 0
	for {
		select {
		case <-l.stop:
			return
		case <-turns.C:
		}
		found := readContent(l.file)
		if again++; !found.same(last) {
			last, again = found, 0
		}
		if again >= 2 {
			l.follow(found)
		}
	}
}

// follow brings found into force, unless that content was the last one to be attempted, or a Reload has read the file
// since.
func (l *Live) follow(found content) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if found.read.Before(l.last.read) || found.same(l.last) {
		return
	}
	if err := l.attempt(found); err != nil && !l.observers.exist() {
		slog.LogAttrs(context.Background(), slog.LevelError, "lock rules refused: the old ones stay in force", //nolint:forbidigo // a file does not change within a request
			append([]slog.Attr{slog.String("file", l.path)}, LogAttrs(err)...)...)
		l.alarmed = true
	}
}
