package ruleset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func BenchmarkLoad_10000Rules(b *testing.B) {
	text := []byte(bigFile(10_000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ruleset.Load("locks.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

// bigFile is a file with n rules, and with every way to write one.
func bigFile(n int) string {
	var text strings.Builder
	text.WriteString("profiles:\n  default: {wait_time: 5s}\n  checkout: {lease_time: 20s, on_busy: skip}\nrules:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - http: POST /shop/%d/orders/:id\n    name: order-%d\n", i, i)
		text.WriteString("    key: \"order:pay:#{path.id}\"\n    wait_time: 10s\n    lease_time: 30s\n")
		text.WriteString("    on_backend: proceed\n    profile: checkout # as all of them\n    status: {busy: {http: 423, grpc: ABORTED}}\n")
	}
	return text.String()
}
