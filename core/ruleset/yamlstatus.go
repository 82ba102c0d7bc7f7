package ruleset

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

const (
	halfExample   = "{http: 423, grpc: ABORTED}"
	statusExample = "busy: " + halfExample
)

//nolint:gochecknoglobals // tables that are only read
var (
	causeTable = newTable("status", causeRows(), map[string]hint{
		"canceled":  {message: "nobody is there to see it when the caller is gone: remove it"},
		"cancelled": {message: "nobody is there to see it when the caller is gone: remove it"},
		"http":      {message: "belongs to a cause: write " + statusExample},
		"grpc":      {message: "belongs to a cause: write " + statusExample},
		"taken":     {meant: "busy"},
		"locked":    {meant: "busy"},
		"timeout":   {meant: "busy"},
		"redis":     {meant: "backend"},
	})
	statusTable = newTable("a status", []row[failpolicy.Status]{
		{"http", "http", (*fileReader).httpStatus},
		{"grpc", "grpc", (*fileReader).grpcCode},
	}, nil)
)

// causeRows are the causes whose status a rule can change.
func causeRows() []row[failpolicy.Statuses] {
	var rows []row[failpolicy.Statuses]
	for _, cause := range failpolicy.Causes() {
		if (&failpolicy.Statuses{}).Of(cause) != nil {
			rows = append(rows, row[failpolicy.Statuses]{string(cause), string(cause), func(f *fileReader, v value, to *failpolicy.Statuses) bool {
				return readFilled(f, v, statusTable, halfExample, to.Of(cause))
			}})
		}
	}
	return rows
}

func (statusesType) read(f *fileReader, v value) (to failpolicy.Statuses, ok bool) {
	ok = readFilled(f, v, causeTable, statusExample, &to)
	return to, ok
}

// readFilled reads a mapping that is not empty.
func readFilled[T any](f *fileReader, v value, t *table[T], example string, to *T) bool {
	switch {
	case !f.Is(v, yaml.MappingNode, example):
		return false
	case len(v.Node.Content) == 0:
		f.Reportf(v.Node, v.Field, "empty: write %s, or remove the line", example)
		return false
	}
	all := readMapping(f, t, v.Field+".", v.Node, to)
	return !slices.ContainsFunc(all, func(s found) bool { return !s.ok })
}

func (f *fileReader) httpStatus(v value, to *failpolicy.Status) bool {
	n, ok := f.Int(v, "409")
	if ok && (n < 400 || n > 599) {
		f.Reportf(v.Node, v.Field, "%d is not the status of an error: write one of 400 to 599, such as 409", n)
		return false
	}
	to.HTTP = n
	f.notePart(v)
	return ok
}

func (f *fileReader) grpcCode(v value, to *failpolicy.Status) bool {
	if !f.Is(v, yaml.ScalarNode, "a code such as ABORTED") {
		return false
	}
	n := v.Node
	if i, err := strconv.Atoi(n.Value); err == nil && i > 0 && i <= int(failpolicy.Unauthenticated) {
		f.Reportf(n, v.Field, "%s: write the code's name, %s", strictyaml.ScalarText(n), failpolicy.Code(i))
		return false
	}
	code, err := failpolicy.ParseCode(strictyaml.Clip(n.Value))
	if err != nil {
		f.Reportf(n, v.Field, "%s", err)
		return false
	}
	to.GRPC = code
	f.notePart(v)
	return true
}
