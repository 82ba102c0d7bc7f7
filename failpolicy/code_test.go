package failpolicy_test

import (
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestParseCode(t *testing.T) {
	t.Parallel()
	for c := failpolicy.CodeCancelled; c <= failpolicy.CodeUnauthenticated; c++ {
		if got, err := failpolicy.ParseCode(c.String()); got != c || err != nil {
			t.Errorf("%s: got %s, %v", c, got, err)
		}
	}
	for _, word := range []string{"OK", "aborted", "CANCELED", "17", ""} {
		if _, err := failpolicy.ParseCode(word); err == nil {
			t.Errorf("%q: accepted", word)
		}
	}
	if got := failpolicy.Code(99).String(); got != "CODE(99)" {
		t.Errorf("got %q", got)
	}
}
