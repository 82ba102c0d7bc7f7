package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	if got := interlock(t, "", "schema"); got.code != exitFine || got.stdout != string(ruleset.Schema()) {
		t.Errorf("got %s", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	byFlag, byName := interlock(t, "", "--version"), interlock(t, "", "version")
	if byFlag != byName || byName.code != exitFine || !strings.HasPrefix(byName.stdout, "interlock ") || !strings.Contains(byName.stdout, " go1.") {
		t.Errorf("got %s and %s", byFlag, byName)
	}
}

// A compiler needs only the folder as an import path for a file that imports the options.
func TestProto(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "third_party")
	written := filepath.Join(root, "interlock", "v1", "lock.proto")
	for range 2 { // the second time it replaces the file
		if got := interlock(t, "", "proto", "-o", root); got.code != exitFine || got.stdout != written+"\n" {
			t.Fatalf("got %s", got)
		}
	}
	got, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../../grpclock/proto/interlock/v1/lock.proto")
	if err != nil || string(got) != string(want) {
		t.Errorf("the file differs from the file of the module: %v", err)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"testdata/proto", root}}),
	}
	if _, err := compiler.Compile(t.Context(), shopProto, typoProto); err != nil {
		t.Errorf("files that import it: %v", err)
	}
}

func TestProto_FileInPlaceOfFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := interlock(t, "", "proto", "-o", file); got.code != exitCannot || !strings.Contains(got.stderr, file) {
		t.Errorf("a file instead of the folder: got %s", got)
	}
}
