package keyexpr_test

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestTemplate_Key(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, template string
		request        request
		want           string
	}{
		{"plain reference", `order_lock_#{path.orderId}`, path("42"), "order_lock_42"},
		{"bracket reference", `order:#{path["orderId"]}`, path("42"), "order:42"},
		{"only a part", `#{path.orderId}`, path("42"), "42"},
		{"two parts", `#{path.shop}:#{path.orderId}`, request{path: entries{"shop": {"s"}, "orderId": {"1"}}}, "s:1"},
		{"constant", `nightly-report`, request{}, "nightly-report"},
		{"literal opening", `a#{"#{"}b`, request{}, "a#{b"},
		{"constant between parts", `#{path.shop}#{"/"}#{path.orderId}`, request{path: entries{"shop": {"s"}, "orderId": {"1"}}}, "s/1"},
		{"hash tag in literals", `{order}:#{path.orderId}`, path("42"), "{order}:42"},
		{"hash tag around a part", `{#{path.orderId}}:x`, path("42"), "{42}:x"},
		{"hash tag opened by a part", `#{"{"}x}:#{path.orderId}`, path("42"), "{x}:42"},
		{"hash tag opened by a prefix of a sum", `#{"{a:" + path.orderId}}`, path("42"), "{a:42}"},
		{"closing brace in literals", `a}b:#{path.orderId}-}`, path("42"), "a}b:42-}"},
		{"literal closing brace", `a#{"}"}:#{path.orderId}`, path("42"), "a}:42"},
		{"brace in a string", `x:#{path.orderId + "}"}`, path("1"), "x:1%7D"},
		{"apostrophe in literals", `it's:#{path.orderId}`, path("1"), "it's:1"},
		{"header in any case", `h:#{header["x-request-id"]}`, request{header: entries{"X-Request-Id": {"a"}}}, "h:a"},
		{"first of repeated", `q:#{query.id[0]}`, request{query: entries{"id": {"a", "b"}}}, "q:a"},
		{"second of repeated", `q:#{query.id[1]}`, request{query: entries{"id": {"a", "b"}}}, "q:b"},
		{"bool", `o:#{body.x}`, body(`{"x": false}`), "o:false"},
		{"untyped text", `o:#{body.id}`, body(`{"id": "a-1"}`), "o:a-1"},
		{"nested", `o:#{body.a.b[1].c}`, body(`{"a": {"b": [{}, {"c": "x"}]}}`), "o:x"},
		{"optional chain", `o:#{body.a?.b}`, body(`{"a": {"b": "x"}}`), "o:x"},
		{"default used", `o:#{query.id ?? "none"}`, request{}, "o:none"},
		{"concatenation is text", `o:#{body.a + "1"}`, body(`{"a": "1"}`), "o:11"},
		{"condition", `o:#{method == "POST" ? path.orderId : "none"}`, path("1"), "o:1"},
		{"element of split", `o:#{split(path.orderId, "-")[1]}`, path("a-b"), "o:b"},
		{"last of split", `o:#{split(path.orderId, "-")[-1]}`, path("a-b"), "o:b"},
		{"substring", `o:#{path.orderId[0:2]}`, path("abcdef"), "o:ab"},
		{"registered", `u:#{principal}`, request{principal: "bob"}, "u:bob"},
		{"non-ASCII text", `o:#{path.orderId}`, path("größe"), "o:größe"},
		{"several lines", "o:#{path.orderId +\n  \"x\"}", path("1"), "o:1x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compile(t, tt.template).Key(tt.request.env(t))
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// Templates and conditions are safe for concurrent use.
func TestTemplate_Concurrent(t *testing.T) {
	t.Parallel()
	template := compile(t, `o:#{lower(path.orderId)}:#{query.q ?? "x"}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			id := strconv.Itoa(worker)
			for range 100 {
				if got, err := template.Key(path(id).env(t)); err != nil || got != "o:"+id+":x" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestTemplate_Keys(t *testing.T) {
	t.Parallel()
	items := body(`{"shop": "s", "items": [{"sku": "b", "n": 1}, {"sku": "a", "n": 2}, {"sku": "b", "n": 3}]}`)
	tests := []struct {
		name, template string
		request        request
		want           []string
	}{
		{"map", `inventory:deduct:#{map(body.items, .sku)}`, items, []string{"inventory:deduct:a", "inventory:deduct:b"}},
		{"with other parts", `#{body.shop}:#{map(body.items, .sku)}:x`, items, []string{"s:a:x", "s:b:x"}},
		{"filter", `i:#{map(filter(body.items, .n > 1), .sku)}`, items, []string{"i:a", "i:b"}},
		{"all of a repeated value", `i:#{query.id[:]}`, request{query: entries{"id": {"2", "1", "2"}}}, []string{"i:1", "i:2"}},
		{"untyped list", `i:#{body.ids[:]}`, body(`{"ids": [2, 1]}`), []string{"i:1", "i:2"}},
		{"no list", `i:#{path.orderId}`, path("1"), []string{"i:1"}},
		{"tuples of untyped elements", `i:#{body.ids[:]}`, body(`{"ids": [1, "1"]}`), []string{"i:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compile(t, tt.template).Keys(tt.request.env(t))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// refusing is an Env in which one variable must not be asked for.
type refusing struct {
	keyexpr.Values

	t    *testing.T
	slot int
}

func (r refusing) Value(slot int) (any, error) {
	if slot == r.slot {
		r.t.Error("the variable was asked for")
	}
	return r.Values.Value(slot)
}

func TestTemplate_CheckWithout(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.NewSchema(
		keyexpr.Variable{Name: "late", Type: keyexpr.AnyType()},
		keyexpr.Variable{Name: "early", Type: keyexpr.AnyType()},
	)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		template string
		early    any
		want     keyexpr.Reason // 0: nothing is wrong so far
	}{
		"all is there":             {"a:#{late.id}:#{early.id}", map[string]any{"id": "1"}, 0},
		"missing behind":           {"a:#{late.id}:#{early.id}", nil, keyexpr.ReasonMissing},
		"missing before":           {"a:#{early.id}:#{late.id}", nil, keyexpr.ReasonMissing},
		"in one expression":        {"a:#{late.id + early.id}", nil, 0},
		"nothing but late":         {"a:#{late.id}", nil, 0},
		"a list that is late":      {"a:#{map(late.ids, .id)}:#{early.id}", nil, keyexpr.ReasonMissing},
		"a list that is early":     {"a:#{late.id}:#{map(early.ids, .id)}", map[string]any{"ids": []any{}}, keyexpr.ReasonEmpty},
		"an early list that fits":  {"a:#{late.id}:#{map(early.ids, .id)}", map[string]any{"ids": []any{map[string]any{"id": "1"}}}, 0},
		"no variable at all":       {"a", nil, 0},
		"of the wrong type":        {"a:#{late.id}:#{early.id}", map[string]any{"id": []any{}}, keyexpr.ReasonWrongType},
		"an empty text":            {"a:#{late.id}:#{early.id}", map[string]any{"id": ""}, keyexpr.ReasonEmpty},
		"an expression over early": {"a:#{late.id}:#{lower(early.id)}", map[string]any{"id": ""}, keyexpr.ReasonEmpty},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := keyexpr.Compile(tt.template, schema)
			if err != nil {
				t.Fatal(err)
			}
			err = template.CheckWithout(refusing{keyexpr.Values{nil, tt.early}, t, 0}, "late", "other")
			if tt.want == 0 {
				if err != nil {
					t.Errorf("got %v, want nothing", err)
				}
				return
			}
			failure, ok := err.(*keyexpr.EvalError) //nolint:errorlint // documented to be one
			if !ok || failure.Reason != tt.want || failure.Template != tt.template {
				t.Errorf("got %v, want reason %v of the template", err, tt.want)
			}
		})
	}
}

func TestTemplate_CheckWithoutSeveral(t *testing.T) {
	t.Parallel()
	template := compile(t, `o:#{path.orderId}:#{body.ids[:]}:#{lower(query.id)}`)
	whole := request{path: entries{"orderId": {"7"}}, query: entries{"id": {"A"}}, body: `{"ids": [1, 2]}`}
	if err := errors.Join(template.CheckWithout(whole.env(t)), template.CheckWithout(request{}.env(t), "body", "path", "query")); err != nil {
		t.Error(err)
	}
	if err := template.CheckWithout(request{path: whole.path, query: whole.query}.env(t), "path", "query"); reasonOf(t, err) != keyexpr.ReasonMissing {
		t.Errorf("got %v, want that body.ids is missing", err)
	}
}

// nothing is a nil of every kind that a variable may be.
func nothing() []any {
	var list []string
	var table map[string]string
	var pointer *int
	return []any{list, table, pointer, &list, &table, &pointer}
}

// A registered variable that is nil is the mistake of the program, of whatever type it
// was declared.
func TestRegistered_NilOfAnyTypeIsUnset(t *testing.T) {
	t.Parallel()
	for _, value := range nothing() {
		for _, typ := range []reflect.Type{reflect.TypeOf(value), reflect.TypeFor[any]()} {
			s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.GoType(typ), Registered: true})
			for _, template := range []string{"#{who}", `#{len(who) > 0 ? "some" : "none"}`, `#{who["a"]}`, `#{map(who, #)}`} {
				compiled, err := keyexpr.Compile(template, s)
				if err != nil {
					continue // it is for variables of other types
				}
				keys, err := compiled.Keys(keyexpr.Values{value})
				if failure, ok := errors.AsType[*keyexpr.EvalError](err); !ok || failure.Reason != keyexpr.ReasonUnset {
					t.Errorf("%T as %v: %s yields %q, %v, want that it is unset", value, typ, template, keys, err)
				}
			}
			condition, err := keyexpr.CompileCondition(`who == "a"`, s)
			if err != nil {
				continue
			}
			if yes, err := condition.Eval(keyexpr.Values{value}); err == nil {
				t.Errorf("%T as %v: a condition yields %t, want that it is unset", value, typ, yes)
			}
		}
	}
}

// So is a struct that nobody has put anything into, whatever is read of it.
func TestRegistered_ZeroStructIsUnset(t *testing.T) {
	t.Parallel()
	type user struct {
		Tenant string
		Level  int
	}
	s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.TypeFor[user](), Registered: true})
	for value, want := range map[user]keyexpr.Reason{{}: keyexpr.ReasonUnset, {Level: 1}: keyexpr.ReasonEmpty, {Tenant: "a"}: 0} {
		if _, err := compileFor(t, "#{who.Tenant}", s).Keys(keyexpr.Values{value}); (err != nil || want != 0) && reasonOf(t, err) != want {
			t.Errorf("%v: got %v, want %v", value, err, want)
		}
	}
}

func TestRegistered_EmptyListIsNoNil(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.TypeFor[[]string](), Registered: true})
	if _, err := compileFor(t, "#{who}", s).Keys(keyexpr.Values{[]string{}}); reasonOf(t, err) != keyexpr.ReasonEmpty {
		t.Errorf("got %v, want that it is empty", err)
	}
	got, err := compileFor(t, `#{len(who) > 0 ? "some" : "none"}`, s).Key(keyexpr.Values{[]string{}})
	if err != nil || got != "none" {
		t.Errorf("got %q, %v, want none", got, err)
	}
}
