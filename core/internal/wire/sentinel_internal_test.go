package wire

import (
	"testing"
	"time"
)

// The Sentinels confirm only connections to the address that they name. Any other connection becomes unsure
// with age, whatever they answer.
func TestSentinels_Unsure(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &sentinels{start: now.Add(-time.Hour)}
	s.begin()
	defer s.close()
	s.asking.Store(true) // so that no goroutine asks the Sentinels
	s.confirmed.Store(int64(now.Sub(s.start)))
	for name, tt := range map[string]struct {
		age           time.Duration
		named, unsure bool
	}{
		"new":              {time.Second, true, false},
		"old, and named":   {time.Minute, true, false},
		"new, not named":   {time.Second, false, false},
		"old, of a tunnel": {time.Minute, false, true},
	} {
		if got := s.unsure(now.Add(-tt.age), now, tt.named); got != tt.unsure {
			t.Errorf("%s: unsure %t", name, got)
		}
	}
	if !s.unsure(now, now.Add(2*confirmedFor), true) {
		t.Error("still sure long after the last confirmation")
	}
}
