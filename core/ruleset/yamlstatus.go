package ruleset

import (
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

const statusExample = "busy: {http: 423, grpc: ABORTED}"

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
		{"http", "http", func(f *fileReader, v value, to *failpolicy.Status) (ok bool) {
			to.HTTP, ok = f.httpStatus(v)
			return ok
		}},
		{"grpc", "grpc", func(f *fileReader, v value, to *failpolicy.Status) (ok bool) {
			to.GRPC, ok = f.grpcCode(v)
			return ok
		}},
	}, nil)
)

// causeRows makes a row of every cause with a status.
func causeRows() []row[failpolicy.Statuses] {
	var rows []row[failpolicy.Statuses]
	t := reflect.TypeFor[failpolicy.Statuses]()
	for i := range t.NumField() {
		name := strings.ToLower(t.Field(i).Name)
		read := into((*fileReader).status)
		rows = append(rows, row[failpolicy.Statuses]{name, name, func(f *fileReader, v value, to *failpolicy.Statuses) bool {
			return read(f, v, reflect.ValueOf(to).Elem().Field(i))
		}})
	}
	return rows
}

func (f *fileReader) statuses(v value) (failpolicy.Statuses, bool) {
	var s failpolicy.Statuses
	return s, f.isFilled(v, statusExample) && allFound(readMapping(f, causeTable, v.field+".", v.node, &s))
}

func (f *fileReader) status(v value) (failpolicy.Status, bool) {
	var s failpolicy.Status
	return s, f.isFilled(v, "{http: 423, grpc: ABORTED}") && allFound(readMapping(f, statusTable, v.field+".", v.node, &s))
}

// isFilled reports what is no mapping, and an empty one.
func (f *fileReader) isFilled(v value, example string) bool {
	if !f.is(v, yaml.MappingNode, example) {
		return false
	}
	if len(v.node.Content) == 0 {
		f.reportf(v.node, v.field, "empty: write %s, or remove the line", example)
		return false
	}
	return true
}

func allFound(all []found) bool {
	for _, s := range all {
		if !s.ok {
			return false
		}
	}
	return true
}

func (f *fileReader) httpStatus(v value) (int, bool) {
	n, ok := f.int(v, "409")
	if ok && (n < 400 || n > 599) {
		f.reportf(v.node, v.field, "%d is not the status of an error: write one of 400 to 599, such as 409", n)
		return 0, false
	}
	f.notePart(v)
	return n, ok
}

func (f *fileReader) grpcCode(v value) (failpolicy.Code, bool) {
	if !f.is(v, yaml.ScalarNode, "a code such as ABORTED") {
		return failpolicy.OK, false
	}
	n := v.node
	if i, err := strconv.Atoi(n.Value); err == nil && i > 0 && i <= int(failpolicy.Unauthenticated) {
		f.reportf(n, v.field, "%s: write the code's name, %s", scalarText(n), failpolicy.Code(i))
		return failpolicy.OK, false
	}
	code, err := failpolicy.ParseCode(clipped(n.Value))
	if err != nil {
		f.reportf(n, v.field, "%s", err)
		return failpolicy.OK, false
	}
	f.notePart(v)
	return code, true
}
