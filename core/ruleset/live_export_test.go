package ruleset

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchConfig is what Watch does not let anybody choose.
type WatchConfig struct {
	Open         func() (*fsnotify.Watcher, error)
	Settle, Poll time.Duration
}

// WatchWith is Watch with other times.
func WatchWith(path string, c WatchConfig, opts ...Option) (*Live, error) {
	return watch(path, watchConfig{open: c.Open, settle: c.Settle, poll: c.Poll}, opts...)
}
