package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// The command prints the dump of package ruleset.
func TestDump(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/locks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.Load("testdata/locks.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := set.Dump().WriteText(&want); err != nil {
		t.Fatal(err)
	}
	if got := interlock(t, "", "dump", "testdata/locks.yaml"); got != (result{exitFine, want.String(), ""}) {
		t.Errorf("got %s, want %s", got, want.String())
	}
	document, err := json.MarshalIndent(set.Dump(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if got := interlock(t, "", "dump", "testdata/locks.yaml", "--format", "json"); got != (result{exitFine, string(document) + "\n", ""}) {
		t.Errorf("got %s, want %s", got, document)
	}
}
