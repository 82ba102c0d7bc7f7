// Gen makes Go code of a .proto file with the protoc-gen-go of go.mod, and without
// protoc, which a machine with only Go does not have. go generate runs it in the
// folder that the code goes to.
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
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: gen [-roots folders] file.proto")
	}
	if err := generate(context.Background(), strings.Split(*roots, ","), flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

// generate writes the Go code of source, a path below one of the roots.
func generate(ctx context.Context, roots []string, source string) error {
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
	reply, err := plugin(ctx, request)
	if err != nil {
		return err
	}
	file := reply.GetFile()[0]
	return os.WriteFile(path.Base(file.GetName()), []byte(file.GetContent()), 0o644)
}

// closure is a file after everything that it imports.
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

// plugin runs protoc-gen-go as protoc would.
func plugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "google.golang.org/protobuf/cmd/protoc-gen-go")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	reply := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, reply); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		return nil, errors.New(reply.GetError())
	}
	return reply, nil
}
