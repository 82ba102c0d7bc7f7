// Package protofile compiles .proto files for tests.
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

// Compile makes a descriptor set, with source information as protoc makes it and with
// everything imported, of files given by their paths. Roots are folders for what they
// import. fine adds the places of the values inside options.
func Compile(t testing.TB, fine bool, texts map[string]string, roots ...string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	mode := protocompile.SourceInfoStandard
	if fine {
		mode |= protocompile.SourceInfoExtraOptionLocations
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(texts)},
			&protocompile.SourceResolver{ImportPaths: roots},
		}),
		SourceInfoMode: mode,
	}
	files, err := compiler.Compile(t.Context(), slices.Sorted(maps.Keys(texts))...)
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

// Read reads a set as a program would that knows the options of the given types: with
// an empty one all are unknown fields.
func Read(t testing.TB, set *descriptorpb.FileDescriptorSet, known *protoregistry.Types) *protoregistry.Files {
	t.Helper()
	text, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	again := &descriptorpb.FileDescriptorSet{}
	if err := (proto.UnmarshalOptions{Resolver: known}).Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(again)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Method finds a method by its full name, such as "shop.v1.Orders.Pay".
func Method(t testing.TB, files *protoregistry.Files, name protoreflect.FullName) protoreflect.MethodDescriptor {
	t.Helper()
	d, err := files.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		t.Fatalf("%s is no method", name)
	}
	return m
}
