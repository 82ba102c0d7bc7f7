package protorules

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// The field numbers of descriptors, which form the paths of source information.
const (
	servicesOfFile   = 6
	methodsOfService = 2
	optionsOfMethod  = 4
)

// place finds the positions of the options of a method in its .proto file.
type place struct {
	file      protoreflect.FileDescriptor
	path      protoreflect.SourcePath // the path of the method
	locations protoreflect.SourceLocations
}

func placeOf(m protoreflect.MethodDescriptor) place {
	file := m.ParentFile()
	path := protoreflect.SourcePath{servicesOfFile, int32(m.Parent().Index()), methodsOfService, int32(m.Index())}
	return place{file: file, path: path, locations: file.SourceLocations()}
}

// method returns the position of the method.
func (p place) method() ruleset.Source { return p.nearest(len(p.path), p.path...) }

// lock returns the position of one option or of a field in it. If the source information does not
// contain that position, lock returns the position of the smallest element around it.
func (p place) lock(i int, fields ...protoreflect.FieldNumber) ruleset.Source {
	path := append(slices.Clone(p.path), optionsOfMethod, int32(lockType().TypeDescriptor().Number()), int32(i))
	for _, f := range fields {
		path = append(path, int32(f))
	}
	return p.nearest(len(p.path), path...)
}

// nearest returns the position of the longest known prefix of a path with at least atLeast elements.
func (p place) nearest(atLeast int, path ...int32) ruleset.Source {
	source := ruleset.Source{Layer: ruleset.LayerProto, File: p.file.Path()}
	for n := len(path); n >= atLeast; n-- {
		if at := p.locations.ByPath(path[:n]); at.Path != nil {
			source.Line, source.Column = at.StartLine+1, at.StartColumn+1
			break
		}
	}
	return source
}
