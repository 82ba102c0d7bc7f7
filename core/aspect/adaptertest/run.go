package adaptertest

import "testing"

// Run runs the whole behaviour against an adapter.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	for _, part := range []struct {
		name string
		run  func(*testing.T, Adapter)
	}{
		{"Lock", lock},
		{"Strategies", strategies},
		{"Start", start},
		{"Reload", reload},
		{"Loss", loss},
		{"Handler", handler},
		{"Body", body},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t, a)
		})
	}
}

// each runs the tests of a part, each against a program of its own.
func each(t *testing.T, a Adapter, tests map[string]func(*testing.T, *bench)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, a))
		})
	}
}
