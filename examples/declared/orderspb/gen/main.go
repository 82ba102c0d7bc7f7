// Gen generates Go code from a .proto file with lock options. It uses the plugins pinned
// in go.mod and does not need protoc. With protoc the commands are
//
//	go tool interlock proto -o third_party
//	protoc -I . -I third_party --go_out=. --go-grpc_out=. orders.proto
//
// go generate runs Gen in the parent folder.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	locks "github.com/interlock-go/interlock/grpclock/proto"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: gen file.proto plugin[:options] ...")
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func generate(ctx context.Context, source string, plugins []string) error {
	file, err := compile(ctx, source)
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		plugin, options, _ := strings.Cut(plugin, ":")
		request := &pluginpb.CodeGeneratorRequest{
			FileToGenerate: []string{source},
			Parameter:      new(strings.TrimSuffix("paths=source_relative,"+options, ",")),
			ProtoFile:      withImports(nil, file),
		}
		if err := run(ctx, plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// compile reads a file. The file may import files of this folder and
// interlock/v1/lock.proto, which is in the folder that the command writes.
func compile(ctx context.Context, source string) (linker.File, error) {
	resolver := protocompile.CompositeResolver{
		&protocompile.SourceResolver{},
		&protocompile.SourceResolver{Accessor: func(path string) (io.ReadCloser, error) { return locks.Root.Open(path) }},
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver),
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	files, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// withImports appends a file after its imports.
func withImports(list []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	for _, known := range list {
		if known.GetName() == file.Path() {
			return list
		}
	}
	imports := file.Imports()
	for i := range imports.Len() {
		list = withImports(list, imports.Get(i).FileDescriptor)
	}
	return append(list, protoutil.ProtoFromFileDescriptor(file))
}

// run runs a plugin like protoc does, and writes the files of its answer.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
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
	for _, file := range reply.GetFile() {
		if err := os.WriteFile(file.GetName(), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
