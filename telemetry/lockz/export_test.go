package lockz

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
