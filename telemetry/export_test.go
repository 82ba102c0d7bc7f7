package telemetry

// Constants for tests.
const (
	ScopeName       = scopeName
	DefaultLongWait = defaultLongWait
)
