//go:build !unix

package lockz_test

import "time"

// processorTime is not known here; the ratio of turns is.
func processorTime() time.Duration { return 0 }
