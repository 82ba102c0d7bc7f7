package protorules

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Field numbers of descriptors. Source information uses them in its paths.
const (
	servicesOfFile   = 6
	methodsOfService = 2
	optionsOfMethod  = 4
)

// sourceFinder finds the sources of a method and of its lock options in the .proto file.
type sourceFinder struct {
	file      protoreflect.FileDescriptor
	path      protoreflect.SourcePath // the path of the method
	locations protoreflect.SourceLocations
}

func newSourceFinder(m protoreflect.MethodDescriptor) sourceFinder {
	file := m.ParentFile()
	path := protoreflect.SourcePath{servicesOfFile, int32(m.Parent().Index()), methodsOfService, int32(m.Index())}
	return sourceFinder{file: file, path: path, locations: file.SourceLocations()}
}

// method returns the source of the method.
func (f sourceFinder) method() ruleset.Source { return f.nearest(len(f.path), f.path...) }

// option returns the source of the lock option with index i, or of the field at the path numbers in it. If the source
// information does not contain it, option returns the source of the smallest known element around it.
func (f sourceFinder) option(i int, numbers ...protoreflect.FieldNumber) ruleset.Source {
	path := append(slices.Clone(f.path), optionsOfMethod, int32(lockType().TypeDescriptor().Number()), int32(i))
	for _, number := range numbers {
		path = append(path, int32(number))
	}
	return f.nearest(len(f.path), path...)
}

// nearest returns the source of the longest prefix of path that the source information contains. It does not try prefixes
// of fewer than atLeast elements. If it finds none, the source has no line.
func (f sourceFinder) nearest(atLeast int, path ...int32) ruleset.Source {
	source := ruleset.Source{Layer: ruleset.LayerProto, File: f.file.Path()}
	for n := len(path); n >= atLeast; n-- {
		if at := f.locations.ByPath(path[:n]); at.Path != nil {
			source.Line, source.Column = at.StartLine+1, at.StartColumn+1
			break
		}
	}
	return source
}
