package ruleset

import (
	"context"
	"log/slog"
	"time"
)

// Watch is [Open], and reloads whenever the content of the file has changed, until
// [Live.Close]. It reads the file twice a second. So it sees a file that is replaced by renaming,
// written in place, deleted and written again, on a network drive or behind symbolic links, and a
// ConfigMap of Kubernetes (but not one that is mounted by subPath, which Kubernetes never updates).
//
// Replace the file by renaming a complete one: half a list of rules is a list of rules, too. A
// change is taken into force when the content has stayed the same for 1 s. So must the absence of
// the file before it is reported. A file that never stays the same for so long is never taken;
// [Live.Reload] waits for nothing.
//
// A content that is the same as before is not reported. What is refused, and what
// lets calls run unlocked ([Reload.Unlocked]), goes to [WithReloadObserver] and to the
// observers of the lock clients that use the rules, or without any to [slog.Default] as an error;
// so does every other load after the first, as information.
func Watch(path string, opts ...Option) (*Live, error) { return watch(path, time.Second, opts...) }

func watch(path string, settle time.Duration, opts ...Option) (*Live, error) {
	l, err := Open(path, opts...)
	if err != nil {
		return nil, err
	}
	l.watching.Go(func() { l.watch(settle) })
	return l, nil
}

// watch reads the file until Close, and follows what it reads when that has been the same for the
// settle time. The content decides, and no event of the file system: the folder may be busy, and some
// drives report nothing.
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

// follow takes found into force unless it was tried last, or a Reload has read the file later.
func (l *Live) follow(found content) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if found.read.Before(l.last.read) || found.same(l.last) {
		return
	}
	if err := l.attempt(found); err != nil && !l.observed() {
		slog.LogAttrs(context.Background(), slog.LevelError, "lock rules refused: the old ones stay in force", //nolint:forbidigo // a file changes in no request
			append([]slog.Attr{slog.String("file", l.path)}, LogAttrs(err)...)...)
		l.alarmed = true
	}
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
