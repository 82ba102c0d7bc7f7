package watermilllock

import "time"

// SetAfter replaces [time.After] for the pause before a message is nacked.
func (g *Guard) SetAfter(after func(time.Duration) <-chan time.Time) { g.after = after }
