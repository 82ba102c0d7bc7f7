// Gen generates the Go code of a .proto file with the protoc-gen-go of go.mod. It does not need protoc,
// so a machine needs only Go. go generate runs it in the folder of the generated code. protoc-gen-go-grpc,
// which generates services, is a tool of another module.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	roots := flag.String("roots", ".", "import roots, separated by commas")
	services := flag.String("services", "", "folder of a module that has the tool protoc-gen-go-grpc")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: gen [-roots folders] [-services folder] file.proto")
	}
	if err := generate(context.Background(), strings.Split(*roots, ","), *services, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

// generate writes the Go code of source, a path below one of the roots.
func generate(ctx context.Context, roots []string, services, source string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: roots}),
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	files, err := compiler.Compile(ctx, source)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      new("paths=source_relative,default_api_level=API_OPAQUE"),
		ProtoFile:      closure(files[0]),
	}
	if err := plugin(ctx, request, "run", "google.golang.org/protobuf/cmd/protoc-gen-go"); err != nil || services == "" {
		return err
	}
	request.Parameter = new("paths=source_relative,require_unimplemented_servers=false")
	return plugin(ctx, request, "-C", services, "tool", "protoc-gen-go-grpc")
}

// closure returns a file and all its imports, which come first.
func closure(file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	var list []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		imports := file.Imports()
		for i := range imports.Len() {
			add(imports.Get(i).FileDescriptor)
		}
		list = append(list, protoutil.ProtoFromFileDescriptor(file))
	}
	add(file)
	return list
}

// plugin runs a plugin of protoc and writes the generated file. args are the arguments of the go command
// that starts the plugin.
func plugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest, args ...string) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	reply := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, reply); err != nil {
		return err
	}
	if reply.Error != nil {
		return errors.New(reply.GetError())
	}
	file := reply.GetFile()[0]
	return os.WriteFile(path.Base(file.GetName()), []byte(file.GetContent()), 0o644)
}
