package telemetry

// Constants for tests.
const (
	ScopeName       = scopeName
	DefaultLongWait = defaultLongWait
)

// Roots returns the number of acquisitions without a parent whose hold has not begun.
func (t *Telemetry) Roots() (n int) {
	t.holds.spans.roots.Range(func(any, any) bool { n++; return true })
	return n
}
