// Package protofile compiles .proto files for tests. It depends only on the compiler and descriptors. The
// tests of grpclock and protorules call it.
package protofile

import (
	"maps"
	"slices"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Compile returns the descriptor set of .proto files and all their imports, with the same source information
// as protoc's. sources holds the files by path. roots are import roots. If fine is true, the source
// information includes the positions of values inside options.
func Compile(t testing.TB, fine bool, sources map[string]string, roots ...string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	mode := protocompile.SourceInfoStandard
	if fine {
		mode |= protocompile.SourceInfoExtraOptionLocations
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(sources)},
			&protocompile.SourceResolver{ImportPaths: roots},
		}),
		SourceInfoMode: mode,
	}
	files, err := compiler.Compile(t.Context(), slices.Sorted(maps.Keys(sources))...)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	for _, file := range files {
		add(set, seen, file)
	}
	return set
}

// add appends a file after everything that it imports.
func add(set *descriptorpb.FileDescriptorSet, seen map[string]bool, file protoreflect.FileDescriptor) {
	if seen[file.Path()] {
		return
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		add(set, seen, imports.Get(i).FileDescriptor)
	}
	set.File = append(set.File, protoutil.ProtoFromFileDescriptor(file))
}

// Read reads a set as a program does that contains only the given extension types. With empty types, all
// options are unknown fields.
func Read(t testing.TB, set *descriptorpb.FileDescriptorSet, known *protoregistry.Types) *protoregistry.Files {
	t.Helper()
	wire, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	again := &descriptorpb.FileDescriptorSet{}
	if err := (proto.UnmarshalOptions{Resolver: known}).Unmarshal(wire, again); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(again)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Method returns a method by its full name, for example "shop.v1.Orders.Pay".
func Method(t testing.TB, files *protoregistry.Files, name protoreflect.FullName) protoreflect.MethodDescriptor {
	t.Helper()
	d, err := files.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		t.Fatalf("%s is not a method", name)
	}
	return m
}
