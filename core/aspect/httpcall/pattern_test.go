package httpcall_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

func TestParams(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"/orders":                      nil,
		"/orders/{id}/items/{rest...}": {"id", "rest"},
		"/orders/{$}":                  nil,
		"/orders/{id:[0-9]+}/*":        {"id", "*"},    // chi
		"/orders/:id/items/:item":      {"id", "item"}, // echo
		"/files/*":                     {"*"},
		"/orders/{id}:cancel":          {"id"},
	} {
		if got := httpcall.Params(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
