package shape_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// compile compiles a key over a body, and returns the readable error.
func compile(t *testing.T, body *shape.Type, key string) string {
	t.Helper()
	vars, err := httpvars.New(httpvars.Config{Body: body.Go})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyexpr.Compile(key, vars.Schema()); err != nil {
		return body.Readable(err.Error())
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
	s, err := shape.Sample([]byte(order))
	if err != nil {
		t.Fatal(err)
	}
	body := s.Body("the body of order.json")
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
		got := compile(t, body, c.key)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "struct") {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

func TestSample_OfOtherThanObjects(t *testing.T) {
	t.Parallel()
	s, err := shape.Sample([]byte(`[{"id": 1}, {"id": 2, "user": "ann"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := compile(t, s.Body("the body"), "o:#{map(body, .user)}"); got != "" {
		t.Errorf("a field of the second element only: got %q", got)
	}
	for _, text := range []string{"", "{", `{"a": 1} {"b": 2}`} {
		if _, err := shape.Sample([]byte(text)); err == nil || !strings.Contains(err.Error(), "no JSON") {
			t.Errorf("%q: got %v, want an error", text, err)
		}
	}
}

func TestDescribed_TypesVariables(t *testing.T) {
	t.Parallel()
	described := map[string]any{"Tenant": "string", "ID": "integer", "Roles": []any{"string"}, "Extra": "any", "Team": map[string]any{"Name": "string"}}
	typ := shape.Described(described).Variable("the variable user")
	vars, err := httpvars.New(httpvars.Config{Registered: []httpvars.Registered{{Name: "user", Type: typ.Go}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, want string }{
		{"o:#{user.Tenant}", ""},
		{"o:#{user.ID}", ""},
		{"o:#{user.Roles[0]}", ""},
		{"o:#{user.Extra.x}", ""},
		{"o:#{user.Team.Name}", ""},
		{"o:#{user.tenant}", "write user.Tenant"},
		{"o:#{user.Teannt}", "the variable user has no field Teannt"},
	} {
		_, err := keyexpr.Compile(c.key, vars.Schema())
		got := ""
		if err != nil {
			got = typ.Readable(err.Error())
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.key, got, c.want)
		}
	}
}

// A sample may be anything: its depth must not become that of a Go type.
func TestSample_DeepObjectsEndAsAny(t *testing.T) {
	t.Parallel()
	const deep = 9000
	s, err := shape.Sample([]byte(strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep)))
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for body := s.Body("the body").Go; body.Kind() == reflect.Struct; body = body.Field(0).Type {
		depth++
	}
	if depth == 0 || depth > 100 {
		t.Errorf("the type is %d deep", depth)
	}
}
