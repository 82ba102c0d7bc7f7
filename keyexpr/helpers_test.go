package keyexpr_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// The slots of the schema that most tests use.
const (
	slotPath = iota
	slotQuery
	slotHeader
	slotBody
	slotMethod
	slotPrincipal
)

func requestSchema(tb testing.TB) *keyexpr.Schema {
	tb.Helper()
	return schemaOf(tb,
		keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: []string{"orderId", "shop"}}},
		keyexpr.Variable{Name: "query", Keyed: &keyexpr.Keyed{Noun: "query parameter", Open: true, Repeatable: true}},
		keyexpr.Variable{Name: "header", Keyed: &keyexpr.Keyed{Noun: "header", Open: true, Repeatable: true, Canonical: textproto.CanonicalMIMEHeaderKey}},
		keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()},
		keyexpr.Variable{Name: "method", Type: keyexpr.TypeFor[string]()},
		keyexpr.Variable{Name: "principal", Type: keyexpr.TypeFor[string](), Registered: true},
	)
}

func schemaOf(tb testing.TB, variables ...keyexpr.Variable) *keyexpr.Schema {
	tb.Helper()
	s, err := keyexpr.NewSchema(variables...)
	if err != nil {
		tb.Fatalf("NewSchema: %v", err)
	}
	return s
}

type entries = map[string][]string

// request describes the Env of requestSchema.
type request struct {
	path, query, header entries
	body                string
	principal           any
}

func (q request) env(tb testing.TB) keyexpr.Values {
	tb.Helper()
	values := keyexpr.Values{slotPath: q.path, slotQuery: q.query, slotHeader: q.header, slotMethod: "POST", slotPrincipal: q.principal}
	if q.body != "" {
		d := json.NewDecoder(strings.NewReader(q.body))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			tb.Fatalf("body %s: %v", q.body, err)
		}
		values[slotBody] = v
	}
	return values
}

func path(id string) request { return request{path: entries{"orderId": {id}}} }

func body(json string) request { return request{body: json} }

func compile(tb testing.TB, template string, format ...keyexpr.Format) *keyexpr.Template {
	tb.Helper()
	return compileFor(tb, template, requestSchema(tb), format...)
}

func compileFor(tb testing.TB, template string, s *keyexpr.Schema, format ...keyexpr.Format) *keyexpr.Template {
	tb.Helper()
	t, err := cmp.Or(format...).Compile(template, s)
	if err != nil {
		tb.Fatalf("Compile(%q): %v", template, err)
	}
	return t
}

// argumentSchema returns the schema of a function that takes a T.
func argumentSchema[T any](tb testing.TB, more ...keyexpr.Variable) *keyexpr.Schema {
	tb.Helper()
	s, err := keyexpr.Argument(reflect.TypeFor[T](), more...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func conditionFor(tb testing.TB, expression string, s *keyexpr.Schema) *keyexpr.Condition {
	tb.Helper()
	c, err := keyexpr.CompileCondition(expression, s)
	if err != nil {
		tb.Fatalf("CompileCondition(%q): %v", expression, err)
	}
	return c
}

// isSpaced reports whether a value begins or ends with white space, which no key contains.
func isSpaced(values ...string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) != v })
}

func reasonOf(tb testing.TB, err error) keyexpr.Reason {
	tb.Helper()
	failure, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok {
		tb.Fatalf("got %v (%T), want an *EvalError", err, err)
	}
	return failure.Reason
}
