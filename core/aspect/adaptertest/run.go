package adaptertest

import "testing"

// Run tests the whole behaviour of the adapter a. A test fails at once if a required field of a, or of a Server that a.Start
// returns, is missing.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
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
