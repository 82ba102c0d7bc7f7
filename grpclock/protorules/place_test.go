package protorules_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestOf_KnowsLinesWhereTheDescriptorsHaveThem(t *testing.T) {
	t.Parallel()
	set := compiled(t, "option deprecated = true;", lock("key: \"k\"\n      wait_time: \"1s\""))
	got := only(t, read(t, set, generatedType(t)))
	want := ruleset.Source{Layer: ruleset.LayerProto, File: "shop/v1/shop.proto", Line: 8, Column: 5}
	if got.Source != want || got.Fields["key"] != want || got.Fields["wait_time"] != want || len(got.Fields) != 2 {
		t.Errorf("got %v and %v, want %v for all", got.Source, got.Fields, want)
	}

	for _, file := range set.GetFile() {
		file.SourceCodeInfo = nil
	}
	got = only(t, read(t, set, generatedType(t)))
	want.Line, want.Column = 0, 0
	if got.Source != want || got.Fields["key"] != want {
		t.Errorf("without source information: got %v and %v, want %v", got.Source, got.Fields, want)
	}
}

// fine is a method with source information of single fields, as some compilers make
// it: a location for every known prefix of a path.
type fine struct {
	protoreflect.MethodDescriptor
	known [][]int32
}

func (m fine) ParentFile() protoreflect.FileDescriptor {
	return fineFile{m.MethodDescriptor.ParentFile(), m.known}
}

type fineFile struct {
	protoreflect.FileDescriptor
	known [][]int32
}

func (f fineFile) SourceLocations() protoreflect.SourceLocations {
	return fineLocations{known: f.known}
}

type fineLocations struct {
	protoreflect.SourceLocations
	known [][]int32
}

func (l fineLocations) ByPath(path protoreflect.SourcePath) protoreflect.SourceLocation {
	for i, known := range l.known {
		if protoreflect.SourcePath(known).Equal(path) {
			return protoreflect.SourceLocation{Path: path, StartLine: i}
		}
	}
	return protoreflect.SourceLocation{}
}

func TestOf_TakesTheSmallestPlaceThatIsKnown(t *testing.T) {
	t.Parallel()
	m := fine{pay(t, lock(`key: "k" wait_time: "1s"`)), [][]int32{
		{6, 0, 2, 0}, {6, 0, 2, 0, 4}, {6, 0, 2, 0, 4, 75625, 0, 5},
	}}
	got := only(t, m)
	if got.Source.Line != 2 || got.Fields["key"].Line != 2 || got.Fields["wait_time"].Line != 3 {
		t.Errorf("got rule at %v, fields at %v", got.Source, got.Fields)
	}
}
