package ruleset

// For tests.
var ErrClosed = errClosed

// LayerNone is the layer of a field that is not set.
const LayerNone = layerNone
