package turns_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/locktest"
)

// TestChild is the body of a child process. In the parent it does nothing.
func TestChild(t *testing.T) { //nolint:paralleltest // it is another process
	locktest.PlayRole(t, map[string]func(c locktest.ChildSide) error{
		"caller": callerRole,
	})
}
