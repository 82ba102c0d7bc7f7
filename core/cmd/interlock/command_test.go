package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestRun_GoldenFilesAreAllUsed(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txt")
		ofARedis := slices.ContainsFunc(asks, func(a asked) bool { return a.name == name })
		if !ofARedis && !slices.ContainsFunc(runs, func(r golded) bool { return r.name == name }) {
			t.Errorf("no run has the golden file %s: remove it", f.Name())
		}
	}
}

func TestCommands_HelpSaysEverything(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if nothing, want := interlock(t, ""), (result{exitCannot, "", overview()}); nothing != want {
		t.Errorf("without a command: got %s, want %s", nothing, want)
	}
	for _, c := range commands() {
		byName := interlock(t, "", "help", c.name)
		byFlag := interlock(t, "", c.name, "--help")
		if byName != byFlag || byName.code != exitFine {
			t.Errorf("%s: help and --help differ: %s and %s", c.name, byName, byFlag)
		}
		if line := "//\t" + c.name; !strings.Contains(string(manual), line) || !strings.Contains(string(manual), c.summary) {
			t.Errorf("%s: the package comment lacks the command, or its summary %q", c.name, c.summary)
		}
		if !strings.Contains(overview(), c.summary) {
			t.Errorf("%s: the overview lacks it", c.name)
		}
	}
}

func TestSchema_IsThatOfThePackage(t *testing.T) {
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

func TestKey_ReadsTheBody(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte(`{"sku": "of a file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, stdin, data, want string }{
		{"argument", "", `{"sku": "given"}`, "order:given"},
		{"file", "", "@" + file, "order:of a file"},
		{"standard input", `{"sku": "typed"}`, "@-", "order:typed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := interlock(t, c.stdin, "key", "-d", c.data, "testdata/sampled.yaml", "POST /orders/42/pay")
			if got.code != exitFine || !strings.Contains(got.stdout, "  key   "+c.want+"\n") {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Rules from the standard input are those of the file, under another name.
func TestRun_ReadsTheStandardInput(t *testing.T) {
	t.Parallel()
	const file = "testdata/locks.yaml"
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ byFile, byInput []string }{
		{[]string{"check", file}, []string{"check", "-"}},
		{[]string{"check", file, "--against", file}, []string{"check", "-", "--against", file}},
		{[]string{"check", file, "--against", file}, []string{"check", file, "--against", "-"}},
		{[]string{"dump", file}, []string{"dump", "-"}},
		{[]string{"key", file, "POST /orders/42/pay"}, []string{"key", "-", "POST /orders/42/pay"}},
		{[]string{"key", file, "POST /orders/42/pay"}, []string{"key", "-", "POST", "/orders/42/pay"}},
	} {
		t.Run(strings.Join(c.byInput, " "), func(t *testing.T) {
			t.Parallel()
			want := interlock(t, "", c.byFile...)
			if c.byInput[1] == "-" {
				want.stdout = strings.ReplaceAll(want.stdout, file, "stdin")
			}
			if got := interlock(t, string(rules), c.byInput...); got != want || got.code != exitFine {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// With --strict the output is the same, and warnings are problems.
func TestCheck_Strict(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "testdata/warnings.yaml"},
		{"check", "testdata/switched.yaml"},
		{"check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml"},
	} {
		want := interlock(t, "", args...)
		want.code = exitProblems
		if got := interlock(t, "", append(args, "--strict")...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Where the options of a method are known, the advice to look there is not given.
func TestCheck_AgainstWithDescriptors(t *testing.T) {
	t.Parallel()
	shop := compileImage(t, protocompile.SourceInfoStandard, shopProto)
	args := []string{"check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml"}
	want := interlock(t, "", args...)
	want.stdout = strings.NewReplacer(", unless its .proto has a rule (--descriptors tells)", "", "9 rules:", "9 rules and 1 in .proto files:").Replace(want.stdout)
	if got := interlock(t, "", append(args, "--descriptors", shop)...); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

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

// A place in the old file is none in the pull request.
func TestCheck_AnnotatesTheNewFileOnly(t *testing.T) {
	t.Parallel()
	got := interlock(t, "", "check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml", "--format", "github")
	removed := 0
	for line := range strings.Lines(got.stdout) {
		if strings.HasPrefix(line, "::notice::not judged: ") {
			continue // this is about no file
		}
		if !strings.Contains(line, " file=testdata/unlocked.yaml,line=") {
			t.Errorf("got %q, which is not in the new file", line)
		}
		if strings.Contains(line, "file=testdata/unlocked.yaml,line=1::") && strings.Contains(line, ": removed (testdata/locked.yaml:") {
			removed++
		}
	}
	if removed == 0 {
		t.Errorf("no removed rule is told: got %s", got)
	}
}

// What is advised for a function can be pasted into a shell, whatever its name is.
func TestKey_AdvisesWhatAShellTakes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"close-day", "close the year", "it's (*Orders).Close", `$HOME "a" \\ b`, "POST /orders", "/shop.Orders/Pay"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := fmt.Sprintf("rules:\n- {func: %q, key: a}\n", name)
			advised := interlock(t, rules, "key", "-", "func: "+name+"x")
			_, after, _ := strings.Cut(advised.stderr, "did you mean ")
			word, _, found := strings.Cut(after, "?\n")
			if !found {
				t.Fatalf("got %s", advised)
			}
			pasted, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+word).Output()
			if err != nil || string(pasted) != "func: "+name {
				t.Fatalf("a shell makes %q of %s: %v", pasted, word, err)
			}
			if got := interlock(t, rules, "key", "-", string(pasted)); got.code != exitFine || !strings.Contains(got.stdout, "key  a\n") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestKey_FlagsMayStandAnywhere(t *testing.T) {
	t.Parallel()
	want := interlock(t, "", "key", "testdata/locks.yaml", "POST /orders/42/pay", "--prefix", "shop:", "--hash")
	if want.code != exitFine {
		t.Fatalf("got %s", want)
	}
	for _, args := range [][]string{
		{"key", "--prefix", "shop:", "--hash", "testdata/locks.yaml", "POST /orders/42/pay"},
		{"key", "--hash", "testdata/locks.yaml", "--prefix=shop:", "POST /orders/42/pay"},
	} {
		if got := interlock(t, "", args...); got != want {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}

// An image without source information gives no lines, and one without the imports
// is refused.
func TestCheck_ImagesThatLackSomething(t *testing.T) {
	t.Parallel()
	path := compileImage(t, protocompile.SourceInfoNone, typoProto)
	got := interlock(t, "", "check", "--descriptors", path)
	if got.code != exitProblems || !strings.Contains(got.stdout, "typo/v1/typo.proto: rule of grpc /typo.v1.Orders/Pay: key: ") {
		t.Errorf("without source information: got %s", got)
	}

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	set.File = set.GetFile()[len(set.GetFile())-1:]
	if content, err = proto.Marshal(set); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got = interlock(t, "", "check", "--descriptors", path)
	if got.code != exitCannot || !strings.Contains(got.stderr, "--include_imports") {
		t.Errorf("without imports: got %s", got)
	}
}

// The folder is all that a compiler needs for a file that imports the options.
func TestProto_WritesAnImportRoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "third_party")
	written := filepath.Join(root, "interlock", "v1", "lock.proto")
	for range 2 { // the second time over the first
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
		t.Errorf("the file is not that of the module: %v", err)
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"testdata/proto", root}}),
	}
	if _, err := compiler.Compile(t.Context(), shopProto, typoProto); err != nil {
		t.Errorf("files that import it: %v", err)
	}
}

func TestProto_SaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := interlock(t, "", "proto", "-o", file); got.code != exitCannot || !strings.Contains(got.stderr, file) {
		t.Errorf("a file in place of the folder: got %s", got)
	}
}
