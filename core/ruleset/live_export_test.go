package ruleset

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchConfig is what Watch does not let anybody choose.
type WatchConfig struct {
	Open                    func() (*fsnotify.Watcher, error)
	Replaced, Written, Poll time.Duration
}

// WatchWith is Watch with other times.
func WatchWith(path string, c WatchConfig, opts ...Option) (*Live, error) {
	return watch(path, watchConfig{open: c.Open, replaced: c.Replaced, written: c.Written, poll: c.Poll}, opts...)
}

// WatchedDirs are the directories that are watched for a path.
func WatchedDirs(path string) []string { return watchedDirs(path) }
