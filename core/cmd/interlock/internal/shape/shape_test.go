package shape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/keyexpr"
)

// compile compiles a key over a variable and returns the error.
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

// parseShape parses a type as a routes file contains it.
func parseShape(t *testing.T, description string) *shape.Shape {
	t.Helper()
	s := &shape.Shape{}
	if err := json.Unmarshal([]byte(description), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShape_UnmarshalJSON(t *testing.T) {
	t.Parallel()
	user := parseShape(t, `{"Tenant": "string", "ID": "integer", "Roles": ["string"], "Extra": "any", "Odd": "odd", "None": null, "Team": {"Name": "string"}}`)
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

// A body fits if encoding/json decodes it into the type.
func TestCheck(t *testing.T) {
	t.Parallel()
	withoutIndex := strings.NewReplacer(".0", "", "SKU", "sku") // from Go 1.27 on, errors name fields as the document does
	cart := parseShape(t, `{"sku": "string", "count": "integer", "price": "number", "paid": "boolean", "items": [{"n": "integer"}], "more": "any", "a,b": "string"}`)
	for body, want := range map[string]string{
		`{"sku": "a", "count": 3}`:        "",
		`{"SKU": "a"}`:                    "",
		`{"sku": null}`:                   "",
		`{"sku": 5}`:                      "sku is not of type string",
		`{"SKU": 5}`:                      "sku is not of type string",
		`{"count": 5.0}`:                  "count is not of type integer",
		`{"count": 1e400}`:                "count is not of type integer",
		`{"count": 9223372036854775808}`:  "count is not of type integer",
		`{"price": 1e400}`:                "price is not of type number",
		`{"items": [{"n": 1}, {"n": 2}]}`: "",
		`{"items": [{"n": "a"}]}`:         "items.n is not of type integer",
		`{"items": {}}`:                   "items is not of type list",
		`{"more": {"x": [1]}}`:            "",
		`{"price": 5, "paid": true}`:      "",
		`{"a,b": "c", "unknown": 1}`:      "",
		`[]`:                              "it is not of type object",
		`{`:                               "not JSON",
	} {
		if err := cart.Check([]byte(body)); (err == nil) != (want == "") || err != nil && !strings.Contains(withoutIndex.Replace(err.Error()), want) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
}

func TestShape_Given(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		description, written string
		want                 any // nil for an error
	}{
		{`"string"`, `"a"`, `"a"`},
		{`"string"`, "a", "a"},
		{`"any"`, "a b", "a b"},
		{`"any"`, "12", json.Number("12")},
		{`"integer"`, "12", json.Number("12")},
		{`"integer"`, "a", nil},
		{`{"Tenant": "string"}`, "a", nil},
	} {
		got, err := parseShape(t, c.description).Given(c.written)
		if got != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%s of %s: got %v, %v, want %v", c.written, c.description, got, err, c.want)
		}
	}
}
