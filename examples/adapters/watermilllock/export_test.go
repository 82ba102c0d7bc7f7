package watermilllock

import (
	"context"
	"time"
)

// SetPause replaces the pause before a message is nacked.
func (g *Guard) SetPause(pause func(ctx context.Context, d time.Duration)) { g.pause = pause }
