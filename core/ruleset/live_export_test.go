package ruleset

import "time"

// WatchFor is Watch with another time for which a content must stay the same.
func WatchFor(path string, settle time.Duration, opts ...Option) (*Live, error) {
	return watch(path, settle, opts...)
}
