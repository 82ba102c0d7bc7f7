package lockz

// WithLimits makes a page that keeps less.
func WithLimits(holds, rules, events int) Option {
	return func(c *config) error {
		c.limits.holds, c.limits.rules, c.limits.events = holds, rules, events
		return nil
	}
}
