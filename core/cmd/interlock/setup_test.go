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
	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// asProgram is the environment variable with which this test binary runs as the program. A test that sends
// signals starts it that way.
const asProgram = "INTERLOCK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	gin.SetMode(gin.ReleaseMode)
	logging.Disable()
	if err := os.Unsetenv(redisVariable); err != nil { // tests pass the URL of their Redis
		panic(err)
	}
	m.Run()
}

// result is the result of one run of the program.
type result struct {
	code           int
	stdout, stderr string
}

// interlock runs the program.
func interlock(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := commands().run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// String returns the result in the format of golden files.
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

// compileImage compiles .proto files of testdata/proto and of the module, like buf and protoc. It returns the
// path of the image.
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

// addFile adds a file after its imports.
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

// The holders of the locks in the Redis of a test.
const (
	ann = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:57"
	bob = "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:58"
)

// endless is an endless input.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }
