package grpclock_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/grpclock"
)

// Two kinds of lock on one key would fail when they meet. Which kind a method has is known
// with all its layers: the key here comes from the .proto.
func TestCheck_KindsOnOneKey(t *testing.T) {
	t.Parallel()
	const want = `kind: a reentrant lock of "till:#{req.item}", which is a fenced lock for the rule of grpc /till.v1.Till/Refuse, declared in `
	rules := openRules(t, tillFile("Refuse", "kind: fenced"))
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules))
	if err := b.guard.Check(b.server); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := rules.change(t, "allow_rekey: true\n"+tillFile("Refuse", "kind: reentrant")); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(b.server); err != nil {
		t.Error(err)
	}
	if err := rules.change(t, "allow_rekey: true\n"+tillFile("Refuse", "kind: fenced")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("of a reload: got %v, want %q", err, want)
	}
}
