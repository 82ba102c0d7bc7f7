package lockz

// What the page answers as JSON.
type (
	Snapshot = pageState
	Blocker  = blocker
	HotKey   = hotRow
	Fleet    = fleetState
)

const DefaultRows = jsonRows

// Snapshot is what the page shows now.
func (p *Page) Snapshot() Snapshot { return p.collect(listing{rows: jsonRows}).pageState }
