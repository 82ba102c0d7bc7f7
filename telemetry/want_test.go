package telemetry_test

import (
	"reflect"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func wantAttrs(t *testing.T, s sdktrace.ReadOnlySpan, want map[string]any) {
	t.Helper()
	if got := attrs(s); !reflect.DeepEqual(got, want) {
		t.Errorf("attributes of %s:\n got %v\nwant %v", s.Name(), got, want)
	}
}
