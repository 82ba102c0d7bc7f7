package ruleset

import (
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// notifier tells that something happened in directories. What it was is not told,
// since the content of the file decides: an event of another file costs one reading.
type notifier struct {
	open    func() (*fsnotify.Watcher, error)
	changed chan struct{} // capacity 1

	files      *fsnotify.Watcher // nil while none could be opened
	forwarding sync.WaitGroup
}

func newNotifier(open func() (*fsnotify.Watcher, error)) *notifier {
	return &notifier{open: open, changed: make(chan struct{}, 1)}
}

// watch watches what the path depends on now. It is called before every reading, so
// that what changes later is told. What cannot be watched, because of the system's
// limits or for lack of permission, is found by the poll, and tried again next time.
func (n *notifier) watch(path string) {
	if n.files == nil && !n.start() {
		return
	}
	dirs := watchedDirs(path)
	for range 3 { // a link may change between being read and being watched
		n.set(dirs)
		again := watchedDirs(path)
		if slices.Equal(again, dirs) {
			return
		}
		dirs = again
	}
}

func (n *notifier) start() bool {
	files, err := n.open()
	if err != nil {
		return false
	}
	n.files = files
	n.forwarding.Go(func() { n.forward(files) })
	return true
}

// set watches the directories and no others. One that is watched is added again,
// since it may be another directory under the old name.
func (n *notifier) set(dirs []string) {
	for _, old := range n.files.WatchList() {
		if !slices.Contains(dirs, old) {
			_ = n.files.Remove(old) //nolint:errcheck // it is gone already
		}
	}
	for _, dir := range dirs {
		_ = n.files.Add(dir) //nolint:errcheck // see watch
	}
}

// forward reads what fsnotify says, in a goroutine of its own: fsnotify may hold the
// mutex that Add and Close need until somebody has read an error. An error, such as
// [fsnotify.ErrEventOverflow], means that something was not told.
func (n *notifier) forward(files *fsnotify.Watcher) {
	for {
		select {
		case _, open := <-files.Events:
			if !open {
				return
			}
		case <-files.Errors: //nolint:errcheck // it is handled by looking; closed right before Events is
		}
		n.wake()
	}
}

// wake tells that something happened. It never blocks.
func (n *notifier) wake() {
	select {
	case n.changed <- struct{}{}:
	default: // told already
	}
}

func (n *notifier) close() {
	if n.files != nil {
		_ = n.files.Close() //nolint:errcheck // nothing is left to be done with it
	}
	n.forwarding.Wait()
}
