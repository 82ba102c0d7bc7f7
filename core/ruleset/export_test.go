package ruleset

import "time"

// ErrClosed is the error of [Live.Reload] after [Live.Close].
var ErrClosed = errClosed

// MaxDuration is the longest time of a rule.
const MaxDuration = maxDuration

// LayerNone is the layer of a field that is not set.
const LayerNone = layerNone

// WatchFor is like [Watch], but content must stay the same for the given time.
func WatchFor(path string, settle time.Duration, opts ...Option) (*Live, error) {
	return watch(path, settle, opts...)
}
