package lockz

// The JSON documents of the page.
type (
	Snapshot = snapshot
	Blocker  = blocker
	HotKey   = hotRow
	Fleet    = fleetState
)

const DefaultRows = jsonRows

// Snapshot returns the data of the page without asking Redis.
func (p *Page) Snapshot() Snapshot {
	return *collect(p.tracker, &p.process, p.cfg.names(), listing{rows: jsonRows})
}
