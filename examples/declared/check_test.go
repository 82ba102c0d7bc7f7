package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/examples/declared/orderspb"
)

// The command interlock check finds the same problems as the service at its start.
func TestCheckedCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	about := []string{"--strict", "--routes", writeRoutes(t, dir), "--descriptors", writeImage(t, dir)}
	interlock := buildTool(t, dir)
	check := func(t *testing.T, text string) (output string, err error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "locks.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := exec.Command(interlock, append([]string{"check", path}, about...)...).CombinedOutput()
		return string(all), err
	}
	if output, err := check(t, locksYAML); err != nil {
		t.Errorf("locks.yaml: %v\n%s", err, output)
	}
	for _, m := range startupMistakes() {
		t.Run(m.what, func(t *testing.T) {
			t.Parallel()
			output, err := check(t, strings.Replace(locksYAML, m.old, m.replacement, 1))
			if err == nil {
				t.Errorf("it passes:\n%s", output)
			}
			if err := m.check(output); err != nil {
				t.Error(err)
			}
		})
	}
}

func buildTool(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "interlock.exe")
	output, err := exec.Command("go", "build", "-o", path, "github.com/interlock-go/interlock/core/cmd/interlock").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// writeRoutes writes the description of the routes of the service.
func writeRoutes(t *testing.T, dir string) (path string) {
	t.Helper()
	d, err := start(t.Context(), "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var routes bytes.Buffer
	if err := d.service.WriteRoutes(&routes); err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "routes.json", routes.Bytes())
}

// writeImage writes the file that buf build -o image.binpb writes, or protoc --include_imports
// --descriptor_set_out=image.binpb.
func writeImage(t *testing.T, dir string) (path string) {
	t.Helper()
	image, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: withImports(nil, orderspb.File_orders_proto)})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "image.binpb", image)
}

func withImports(list []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	imports := file.Imports()
	for i := range imports.Len() {
		list = withImports(list, imports.Get(i).FileDescriptor)
	}
	return append(list, protodesc.ToFileDescriptorProto(file))
}

func write(t *testing.T, dir, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
