package core

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/core/redistest"
)

// An ownership that loses its last entry without a release is put right from the same moment on: in
// between, a release would pass it to a waiter, under whom it would then be freed.
func TestOwnership_AmendsFromTheLastEntryOn(t *testing.T) {
	t.Parallel()
	c, err := New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(context.Background()); err != nil { // nothing runs in the background
		t.Fatal(err)
	}
	passable := func(o *ownership) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.count() == 0 && !o.amending
	}
	for range 20_000 {
		o := &ownership{client: c, entering: 1}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.undoEntry(o, false)
		}()
		for open := true; open; {
			if passable(o) {
				t.Fatal("it has no holds, and nothing keeps it from being passed on")
			}
			select {
			case <-done:
				open = false
			default:
			}
		}
	}
}
