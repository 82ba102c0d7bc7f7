package lockz

// What the page answers as JSON.
type (
	Snapshot = snapshot
	Blocker  = blocker
	HotKey   = hotRow
	Fleet    = fleetState
)

const DefaultRows = jsonRows

// Snapshot is what the page shows now.
func (p *Page) Snapshot() Snapshot {
	return *collect(p.tracker, &p.process, p.cfg.names(), listing{rows: jsonRows})
}
