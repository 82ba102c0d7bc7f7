package ruleset

// For tests.
var ErrClosed = errClosed

// MaxDuration is the longest time that a rule has.
const MaxDuration = maxDuration

// LayerNone is the layer of a field that is not set.
const LayerNone = layerNone
