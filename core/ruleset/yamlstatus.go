package ruleset

import (
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

const statusExample = "busy: {http: 423, grpc: ABORTED}"

//nolint:gochecknoglobals // tables that are only read
var (
	causeTable = newTable("status", fieldRows(itself[failpolicy.Statuses], causeReader), map[string]hint{
		"canceled":  {message: "nobody is there to see it when the caller is gone: remove it"},
		"cancelled": {message: "nobody is there to see it when the caller is gone: remove it"},
		"http":      {message: "belongs to a cause: write " + statusExample},
		"grpc":      {message: "belongs to a cause: write " + statusExample},
		"taken":     {meant: "busy"},
		"locked":    {meant: "busy"},
		"timeout":   {meant: "busy"},
		"redis":     {meant: "backend"},
	})
	statusTable = newTable("a status", fieldRows(itself[failpolicy.Status], statusReader), nil)
)

func causeReader(reflect.Type, string) reader {
	return into(filled(statusTable, "{http: 423, grpc: ABORTED}"))
}

func statusReader(t reflect.Type, _ string) reader {
	if t == reflect.TypeFor[failpolicy.Code]() {
		return into((*fileReader).grpcCode)
	}
	return into((*fileReader).httpStatus)
}

// filled reads a mapping that is not empty.
func filled[T any](t *table[T], example string) func(*fileReader, value) (T, bool) {
	return func(f *fileReader, v value) (to T, ok bool) {
		switch {
		case !f.Is(v, yaml.MappingNode, example):
			return to, false
		case len(v.Node.Content) == 0:
			f.Reportf(v.Node, v.Field, "empty: write %s, or remove the line", example)
			return to, false
		}
		all := readMapping(f, t, v.Field+".", v.Node, &to)
		return to, !slices.ContainsFunc(all, func(s found) bool { return !s.ok })
	}
}

func (f *fileReader) httpStatus(v value) (int, bool) {
	n, ok := f.Int(v, "409")
	if ok && (n < 400 || n > 599) {
		f.Reportf(v.Node, v.Field, "%d is not the status of an error: write one of 400 to 599, such as 409", n)
		return 0, false
	}
	f.notePart(v)
	return n, ok
}

func (f *fileReader) grpcCode(v value) (failpolicy.Code, bool) {
	if !f.Is(v, yaml.ScalarNode, "a code such as ABORTED") {
		return failpolicy.OK, false
	}
	n := v.Node
	if i, err := strconv.Atoi(n.Value); err == nil && i > 0 && i <= int(failpolicy.Unauthenticated) {
		f.Reportf(n, v.Field, "%s: write the code's name, %s", strictyaml.ScalarText(n), failpolicy.Code(i))
		return failpolicy.OK, false
	}
	code, err := failpolicy.ParseCode(strictyaml.Clip(n.Value))
	if err != nil {
		f.Reportf(n, v.Field, "%s", err)
		return failpolicy.OK, false
	}
	f.notePart(v)
	return code, true
}
