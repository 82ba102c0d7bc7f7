package lockz

// WithLimits makes a page that keeps less.
func WithLimits(holds, rules, events int) Option {
	return func(c *config) error {
		c.limits.holds, c.limits.rules, c.limits.events = holds, rules, events
		return nil
	}
}

// What the page answers as JSON.
type (
	Snapshot = pageState
	Blocker  = blocker
	HotKey   = hotRow
	Fleet    = fleetState
)

const DefaultRows = defaultRows

// Snapshot is what the page shows now.
func (p *Page) Snapshot(rows int) Snapshot { return p.snapshot(rows) }
