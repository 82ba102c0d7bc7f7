package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// within polls until ok, for at most a second: the time that a failed acquisition
// may leave something behind.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Second); !ok(); time.Sleep(200 * time.Microsecond) { // a poll with a bound, not a guess
		if time.Now().After(end) {
			t.Errorf("%s: not within a second", what)
			return
		}
	}
}

// patient keeps a busy machine from looking like a Redis that is down.
var patient = core.WithBackendTimeout(10 * time.Second)

// faultClose closes a client whose holds have all been released.
func faultClose(t *testing.T, locks *core.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := locks.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}
