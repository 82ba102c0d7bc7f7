package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/gin-gonic/gin"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// asProgram has this test binary be the program: a test that sends signals starts it so.
const asProgram = "INTERLOCK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	gin.SetMode(gin.ReleaseMode)
	if err := os.Unsetenv(redisVariable); err != nil { // tests say which Redis they ask
		panic(err)
	}
	m.Run()
}

// result is what one run of the program did.
type result struct {
	code           int
	stdout, stderr string
}

// interlock runs the program.
func interlock(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// String is the result as golden files have it.
func (r result) String() string {
	text := fmt.Sprintf("exit code %d\n", r.code)
	if r.stdout != "" {
		text += "--- stdout ---\n" + r.stdout
	}
	if r.stderr != "" {
		text += "--- stderr ---\n" + r.stderr
	}
	return text
}

// compileImage compiles .proto files of testdata/proto and of the module as buf and protoc
// do, and returns the file's name.
func compileImage(t *testing.T, sourceInfo protocompile.SourceInfoMode, files ...string) string {
	t.Helper()
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{"testdata/proto", "../../../grpclock/proto"},
		}),
		SourceInfoMode: sourceInfo,
	}
	compiled, err := compiler.Compile(t.Context(), files...)
	if err != nil {
		t.Fatal(err)
	}
	set, seen := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	for _, f := range compiled {
		addFile(set, seen, f)
	}
	content, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.binpb")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// addFile adds a file after those that it imports.
func addFile(set *descriptorpb.FileDescriptorSet, seen map[string]bool, f protoreflect.FileDescriptor) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		addFile(set, seen, f.Imports().Get(i).FileDescriptor)
	}
	set.File = append(set.File, protoutil.ProtoFromFileDescriptor(f))
}

const (
	shopProto = "shop/v1/shop.proto"
	typoProto = "typo/v1/typo.proto"

	kindsProto = "kinds/v1/kinds.proto"
)
