package httpvars_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// identified are the keys of a request that has its id in every place.
func identified(tb testing.TB, template, body string, claims any, format ...keyexpr.Format) ([]string, error) {
	tb.Helper()
	claimed := keyexpr.Variable{Name: "claims", Type: keyexpr.TypeFor[map[string]any]()}
	v := variables(tb, httpvars.Config{PathParams: []string{"id"}, Registered: []keyexpr.Variable{claimed}})
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/?id=42", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Id", "42")
	r.AddCookie(&http.Cookie{Name: "id", Value: "42"})
	compiled, err := cmp.Or(format...).Compile(template, v.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	return compiled.Keys(v.Request(r, &host{path: map[string]string{"id": "42"}, registered: []any{claims}}))
}

// One id is one key wherever it stands in a request and whatever its type.
func TestRequest_OneIDOneKey(t *testing.T) {
	t.Parallel()
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		for part, body := range map[string]string{
			`path.id`: ``, `query.id`: ``, `query.id[:]`: ``, `header["X-Id"]`: ``, `cookie.id`: ``, `[path.id, 42]`: ``,
			`body.id`: `{"id": 42}`, `body["id"]`: `{"id": "42"}`, `body.id ?? "none"`: `{"id": "42"}`, `string(body.id)`: `{"id": 42}`, `int(body.id)`: `{"id": "42"}`,
			`body.ids[:]`: `{"ids": [42, "42"]}`, `map(body.items, .id)`: `{"items": [{"id": "42"}, {"id": 42}]}`,
			`keys(body)`: `{"42": 0}`, `[body.id]`: `{"id": "42"}`, `body.a ? body.id : 0`: `{"id": "42", "a": true}`,
		} {
			if got, err := identified(t, `order:#{`+part+`}:x`, body, nil, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("%s of %s: got %q, %v, want order:42:x alone", part, body, got, err)
			}
		}
		for _, claim := range []any{"42", 42, uint64(42), 42.0, json.Number("42")} {
			got, err := identified(t, `order:#{claims.id}:x`, ``, map[string]any{"id": claim}, format)
			if err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("a claim, %T: got %q, %v, want order:42:x alone", claim, got, err)
			}
		}
	}
}

// What is written as true or as the name of an enum in JSON has that text.
func TestRequest_OneTextOneKey(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{`true`: "true", `"true"`: "true", `"TYPE_BOOL"`: "TYPE_BOOL", `-7`: "-7"} {
		if got, err := identified(t, `#{body.x}`, `{"x": `+value+`}`, nil); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, %v, want %s", value, got, err, want)
		}
	}
	if got, err := identified(t, `#{true}`, ``, nil); err != nil || !slices.Equal(got, []string{"true"}) {
		t.Errorf("a constant: got %q, %v", got, err)
	}
}
