package shape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/keyexpr"
)

// compile compiles a key over a variable, and returns the error.
func compile(t *testing.T, name string, s *shape.Shape, key string) string {
	t.Helper()
	schema, err := keyexpr.NewSchema(keyexpr.Variable{Name: name, Type: s.Type("the " + name)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyexpr.Compile(key, schema); err != nil {
		return err.Error()
	}
	return ""
}

const order = `{
	"id": 42, "sku": "a", "paid": true, "price": 1.5, "note": null,
	"user": {"name": "ann"},
	"items": [{"sku": "a"}, {"sku": "b", "count": 2}],
	"mixed": [1, "a"], "odd": {"a,b": 1}
}`

func TestSample_TypesTheBody(t *testing.T) {
	t.Parallel()
	body, err := shape.Sample([]byte(order), "the body of order.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, want string }{
		{"o:#{body.id}", ""},
		{"o:#{body.paid}", ""},
		{"o:#{body.note}", ""},
		{"o:#{body.note.text}", ""},
		{"o:#{body.user.name}", ""},
		{"o:#{body.items[0].count}", ""},
		{"o:#{map(body.items, .sku)}", ""},
		{"o:#{body.mixed[0]}", ""},
		{`o:#{body.odd["a,b"]}`, ""},
		{"o:#{body.skuu}", "the body of order.json has no field skuu: there are"},
		{"o:#{body.skuu}", "write body.sku"},
		{"o:#{body.user.nam}", "user in the body of order.json has no field nam: there is name"},
		{"o:#{map(body.items, .skv)}", "an element of items in the body of order.json has no field skv: there are count, sku"},
		{"o:#{body.price}", "price"},
		{"o:#{body.user}", "user in the body of order.json"},
	} {
		got := compile(t, "body", body, c.key)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

func TestSample_OfOtherThanObjects(t *testing.T) {
	t.Parallel()
	s, err := shape.Sample([]byte(`[{"id": 1}, {"id": 2, "user": "ann"}]`), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := compile(t, "body", s, "o:#{map(body, .user)}"); got != "" {
		t.Errorf("a field of the second element only: got %q", got)
	}
	for _, text := range []string{"", "{", `{"a": 1} {"b": 2}`} {
		if _, err := shape.Sample([]byte(text), ""); err == nil || !strings.Contains(err.Error(), "no JSON") {
			t.Errorf("%q: got %v, want an error", text, err)
		}
	}
}

// described is a shape as a routes file has it.
func described(t *testing.T, description string) *shape.Shape {
	t.Helper()
	s := &shape.Shape{}
	if err := json.Unmarshal([]byte(description), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnmarshalJSON_TypesVariables(t *testing.T) {
	t.Parallel()
	user := described(t, `{"Tenant": "string", "ID": "integer", "Roles": ["string"], "Extra": "any", "Odd": "odd", "None": null, "Team": {"Name": "string"}}`)
	for _, c := range []struct{ key, want string }{
		{"o:#{user.Tenant}", ""},
		{"o:#{user.ID}", ""},
		{"o:#{user.Roles[0]}", ""},
		{"o:#{user.Extra.x}", ""},
		{"o:#{user.Team.Name}", ""},
		{"o:#{user.Odd.x}", ""},
		{"o:#{user.None.x}", ""},
		{"o:#{user.tenant}", "write user.Tenant"},
		{"o:#{user.Teannt}", "the user has no field Teannt"},
	} {
		got := compile(t, "user", user, c.key)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

// A sample may be anything: its depth must not become that of a type.
func TestSample_DeepObjectsEndAsAny(t *testing.T) {
	t.Parallel()
	const deep = 9000
	s, err := shape.Sample([]byte(strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep)), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := compile(t, "body", s, "o:#{body"+strings.Repeat(".a", 49)+".b}"); !strings.Contains(got, "has no field b") {
		t.Errorf("49 deep: got %q", got)
	}
	if got := compile(t, "body", s, "o:#{body"+strings.Repeat(".a", 50)+".b}"); got != "" {
		t.Errorf("50 deep: got %q, want anything", got)
	}
}

// A body fits if encoding/json decodes it into the type.
func TestCheck(t *testing.T) {
	t.Parallel()
	cart := described(t, `{"sku": "string", "count": "integer", "price": "number", "paid": "boolean", "items": [{"n": "integer"}], "more": "any", "a,b": "string"}`)
	for body, want := range map[string]string{
		`{"sku": "a", "count": 3}`:        "",
		`{"SKU": "a"}`:                    "",
		`{"sku": null}`:                   "",
		`{"sku": 5}`:                      "sku is no string",
		`{"SKU": 5}`:                      "SKU is no string",
		`{"count": 5.0}`:                  "count is no integer",
		`{"count": 1e400}`:                "count is no integer",
		`{"count": 9223372036854775808}`:  "count is no integer",
		`{"price": 1e400}`:                "price is no number",
		`{"items": [{"n": 1}, {"n": 2}]}`: "",
		`{"items": [{"n": "a"}]}`:         "items.n is no integer",
		`{"items": {}}`:                   "items is no list",
		`{"more": {"x": [1]}}`:            "",
		`{"price": 5, "paid": true}`:      "",
		`{"a,b": "c", "unknown": 1}`:      "",
		`[]`:                              "it is no object",
		`{`:                               "no JSON",
	} {
		if err := cart.Check([]byte(body)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
}

func TestGiven_IsJSONOrText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		description, written string
		want                 any // nil for an error
	}{
		{`"string"`, `"a"`, `"a"`},
		{`"string"`, "a", "a"},
		{`"any"`, "a b", "a b"},
		{`"any"`, "12", 12},
		{`"integer"`, "12", 12},
		{`"integer"`, "a", nil},
		{`{"Tenant": "string"}`, "a", nil},
	} {
		got, err := described(t, c.description).Given(c.written)
		if got != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%s of %s: got %v, %v, want %v", c.written, c.description, got, err, c.want)
		}
	}
}
