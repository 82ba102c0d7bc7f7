package adaptertest

import "testing"

// Run tests the whole behaviour of an adapter. It fails at once if the Adapter, or a Server that its Start returns, lacks
// a required field.
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
