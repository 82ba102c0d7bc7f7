package failpolicy_test

import (
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestCause(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, c := range append(failpolicy.Causes(), "unheard-of") {
		s := c.Status()
		fmt.Fprintf(&text, "%-10s %3d %-18s %-24s strategy=%-5v\n  %s\n  %s\n",
			c, s.HTTP, s.GRPC, c.Reason(), c.AsksStrategy(), c.Type(), c.Title())
	}
	golden.Assert(t, text.String(), "answers.txt")
}
