package keyexpr_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func decodeJSON(text string) (any, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	return v, true
}

// FuzzCompile compiles any text and evaluates valid templates. Each failure is an *Error or an *EvalError,
// and there is never a panic, an empty key or a key that is too long.
func FuzzCompile(f *testing.F) {
	for _, source := range badTemplates {
		f.Add(source)
	}
	for _, source := range badArgumentTemplates {
		f.Add(source)
	}
	f.Add(`order_lock_#{path.orderId}`)
	f.Add(`i:#{map(filter(body.items, .n > 1 and .sku in query.x[:]), upper(.sku))}:#{in.ID ?? 0}`)
	f.Add(`#{(body.a?.b["c"][0] ?? "d") + (in.Name not in ["a"] ? "e" : "f")}`)
	f.Add(`#{body[path.shop][int(query.n)][1:2] | trim() | lower()}`)
	schema := fuzzSchema(f)
	envs := fuzzEnvs(f)
	f.Fuzz(func(t *testing.T, source string) {
		template, err := keyexpr.Compile(source, schema)
		if err != nil {
			if _, ok := errors.AsType[*keyexpr.Error](err); !ok {
				t.Fatalf("%q: %v is not an *Error", source, err)
			}
			return
		}
		for _, env := range envs {
			keys, err := template.Keys(env)
			if _, ok := errors.AsType[*keyexpr.EvalError](err); err != nil && !ok {
				t.Fatalf("%q: %v is not an *EvalError", source, err)
			}
			for _, key := range keys {
				if key == "" || len(key) > keyexpr.DefaultMaxLength {
					t.Fatalf("%q makes the key %q", source, key)
				}
			}
		}
	})
}

// FuzzCompileCondition compiles any text as a condition and evaluates valid conditions.
func FuzzCompileCondition(f *testing.F) {
	for _, source := range badConditions {
		f.Add(source)
	}
	f.Add(`any(body.items, .n > 1) and not in.Flag or query.x == nil`)
	f.Add(`(body.a ?? 1) + body.b > in.Price and "x" in body.tags`)
	schema := fuzzSchema(f)
	envs := fuzzEnvs(f)
	f.Fuzz(func(t *testing.T, source string) {
		condition, err := keyexpr.CompileCondition(source, schema)
		if err != nil {
			if _, ok := errors.AsType[*keyexpr.Error](err); !ok {
				t.Fatalf("%q: %v is not an *Error", source, err)
			}
			return
		}
		for _, env := range envs {
			if _, err := condition.Eval(env); err != nil {
				if _, ok := errors.AsType[*keyexpr.EvalError](err); !ok {
					t.Fatalf("%q: %v is not an *EvalError", source, err)
				}
			}
		}
	})
}

func fuzzSchema(tb testing.TB) *keyexpr.Schema {
	tb.Helper()
	return schemaOf(tb,
		keyexpr.Variable{Name: "in", Type: keyexpr.TypeFor[argument]()},
		keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: []string{"orderId", "shop"}}},
		keyexpr.Variable{Name: "query", Keyed: &keyexpr.Keyed{Noun: "query parameter", Open: true, Repeatable: true}},
		keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()},
	)
}

func fuzzEnvs(tb testing.TB) []keyexpr.Values {
	tb.Helper()
	value, _ := decodeJSON(`{"a": {"b": {"c": [1]}}, "items": [{"sku": "x", "n": 2}, {"sku": "", "n": 0.5}], "b": 18446744073709551615,
		"tags": ["x", null, 1], "n": null, "id": "12"}`)
	return []keyexpr.Values{
		{},
		{&argument{ID: 1, Name: "n"}, entries{"orderId": {"1"}, "shop": {"a"}}, entries{"x": {"a", "b"}, "n": {"0"}}, value},
		{argument{}, entries{"orderId": {""}}, entries{"x": {""}}, []any{value}},
		{(*argument)(nil), nil, nil, "text"},
	}
}
