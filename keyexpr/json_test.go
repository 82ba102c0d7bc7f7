package keyexpr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

// A number close to zero is slow to parse. DecodeJSON stops at the first one, so it parses only one.
func TestDecodeJSON_NumbersNextToZero(t *testing.T) {
	t.Parallel()
	for number, refused := range map[string]bool{
		"2.47e-324": true, "4.9406564584124654e-324": true, "-2.2250738585072011e-308": true, "1e-400": true,
		"1e-99999999999999999999": true, "0.000001e-303": true, "1000000e-315": true, "0." + zeros(400) + "1": true,
		"0": false, "0.0": false, "0e-999": false, "-0.000e-400": false, "1e-300": false, "3.1e-305": false,
		"0.5": false, "12.3456789": false, "1e400": false, "1e99999999999999999999": false, zeros(0) + "7": false,
		"100000000e-310": false, "1" + zeros(400) + "e-500": false, "0.00001e-300": false,
	} {
		_, err := keyexpr.DecodeJSON([]byte(`{"amount":` + number + `}`))
		if (err != nil) != refused {
			t.Errorf("%s: got %v, want an error: %v", number, err, refused)
		}
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

// documentSchema returns a schema with a body from a client.
func documentSchema(tb testing.TB) *keyexpr.Schema {
	tb.Helper()
	return schemaOf(tb, keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()}, keyexpr.Variable{Name: "name", Type: keyexpr.TypeFor[string]()})
}

func documentKeys(tb testing.TB, expression, document, name string) ([]string, error) {
	tb.Helper()
	value, err := keyexpr.DecodeJSON([]byte(document))
	if err != nil {
		tb.Fatalf("%s: %v", document, err)
	}
	return compileFor(tb, "#{"+expression+"}", documentSchema(tb)).Keys(keyexpr.Values{value, name})
}

func TestDecodeJSON_Refuses(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		``:                      "ends too early",
		` `:                     "ends too early",
		`{`:                     "ends too early",
		`[`:                     "ends too early",
		`{"a"`:                  "ends too early",
		`{"a":`:                 "ends too early",
		`[1`:                    "ends too early",
		`}`:                     "invalid character",
		`]`:                     "invalid character",
		`[1,]`:                  "invalid character",
		`{a: 1}`:                "invalid character",
		`{'a': 1}`:              "invalid character",
		`nul`:                   "ends too early",
		`tru`:                   "ends too early",
		`01`:                    "more than one value",
		`1.`:                    "ends too early",
		`.5`:                    "invalid character",
		`+1`:                    "invalid character",
		`0x10`:                  "more than one value",
		`NaN`:                   "invalid character",
		`Infinity`:              "invalid character",
		`"a`:                    "ends too early",
		`1 2`:                   "more than one value",
		`{} {}`:                 "more than one value",
		`{} x`:                  "more than one value",
		`[1] ]`:                 "more than one value",
		`"a" "b"`:               "more than one value",
		`{"σ": 1, "ς": 2}`:      "a name twice",
		`{"\u0061": 1, "a": 2}`: "a name twice",
		`{"": 1, "": 2}`:        "a name twice",
		"{\"a\": \"\xff\"}":     "not valid UTF-8",
		"{\"\xff\": 1}":         "not valid UTF-8",
		"\xef\xbb\xbf{}":        "invalid character", // a byte order mark
		strings.Repeat("[", 300) + strings.Repeat("]", 300):           "nested too deeply",
		strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat("}", 300): "nested too deeply",
		strings.Repeat("[", 200) + strings.Repeat("]", 200):           "",
		`{}`:                          "",
		`[]`:                          "",
		`null`:                        "",
		"\n\t {\"a\" :\r\n 1 } \n ":   "",
		`{"a1": 1, "a2": 1, "a_": 1}`: "",
		`"\ud800"`:                    "",
	} {
		_, err := keyexpr.DecodeJSON([]byte(document))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: got %v, want %q", document, err, want)
		}
	}
}

// An expression finds a name in any case, like a handler with a struct.
func TestDecodeJSON_NamesInAnyCase(t *testing.T) {
	t.Parallel()
	tests := []struct{ expression, document, name, want string }{
		{`body.id`, `{"id": 1}`, "", "1"},
		{`body.id`, `{"ID": 1}`, "", "1"},
		{`body.id`, `{"Id": 1}`, "", "1"},
		{`body.ID`, `{"id": 1}`, "", "1"},
		{`body["ID"]`, `{"iD": 1}`, "", "1"},
		{`body.user.id`, `{"USER": {"ID": 1}}`, "", "1"},
		{`body.users[0].id`, `{"Users": [{"Id": 1}]}`, "", "1"},
		{`map(body.items, .sku)`, `{"items": [{"SKU": "a"}, {"sku": "b"}, {"Sku": "c"}]}`, "", "a b c"},
		{`map(body.items, #["sku"])`, `{"items": [{"SKU": "a"}]}`, "", "a"},
		{`filter(body.items, .n > 1)[0].n`, `{"items": [{"N": 1}, {"N": 2}]}`, "", "2"},
		{`(body.none ?? body.user).id`, `{"User": {"Id": 1}}`, "", "1"},
		{`"id" in body ? 1 : 2`, `{"ID": 1}`, "", "1"},
		{`name in body ? 1 : 2`, `{"ID": 1}`, "iD", "1"},
		{`"other" in body ? 1 : 2`, `{"ID": 1}`, "", "2"},
		{`"id" not in body.user ? 1 : 2`, `{"User": {"Id": 1}}`, "", "2"},
		{`len(body)`, `{"B": 2, "a": 1}`, "", "2"},
		{`keys(body)`, `{"b": 2, "a": 1}`, "", "a b"},
		{`body.kelvin`, `{"\u212aelvin": 1}`, "", "1"},
		{`body.strasse`, `{"\u017ftrasse": 1}`, "", "1"},
		{`body["größe"]`, `{"GRÖSSE": 2, "GRÖßE": 1}`, "", "1"},
	}
	for _, tt := range tests {
		keys, err := documentKeys(t, tt.expression, tt.document, tt.name)
		if got := strings.Join(keys, " "); err != nil || got != tt.want {
			t.Errorf("%s of %s: got %q, %v, want %q", tt.expression, tt.document, got, err, tt.want)
		}
	}
}

// An expression whose result depends on the case of names is refused.
func TestDecodeJSON_RefusesDependenceOnCase(t *testing.T) {
	t.Parallel()
	for _, tt := range []sample{
		{`keys(body)`, `{"ID": 1}`},
		{`keys(body.user)`, `{"user": {"Id": 1}}`},
		{`body == body ? 1 : 2`, `{"a": 1}`},
		{`body.a == body.b ? 1 : 2`, `{"a": {"x": 1}, "b": {"X": 1}}`},
		{`body.a == body.b ? 1 : 2`, `{"a": [{"x": 1}], "b": [{"x": 1}]}`},
		{`body.a in body.b ? 1 : 2`, `{"a": {"x": 1}, "b": [{"x": 1}]}`},
		{`[body.a] == [body.a] ? 1 : 2`, `{"a": {}}`},
	} {
		keys, err := documentKeys(t, tt.expression, tt.want, "")
		if err == nil {
			t.Errorf("%s of %s: got %q, want an error", tt.expression, tt.want, keys)
		} else if got := reasonOf(t, err); got != keyexpr.ReasonExpression {
			t.Errorf("%s of %s: got %v", tt.expression, tt.want, err)
		}
	}
}

// A comparison with a name that keys never returns is an error at start-up.
func TestDecodeJSON_KeysInLowerCase(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`filter(keys(body), # == "orderId")`:       `"orderId" is not a name in lower case, as keys returns the names of JSON; write "name" in the map`,
		`map(filter(keys(body), # != "SKU"), #)`:   `"SKU" is not a name in lower case, as keys returns the names of JSON; write "name" in the map`,
		`keys(body)[0] in ["Id", "id"] ? 1 : 2`:    `"Id" is not a name in lower case, as keys returns the names of JSON; write "name" in the map`,
		`any(keys(body.a), "A" == #) ? 1 : 2`:      `"A" is not a name in lower case, as keys returns the names of JSON; write "name" in the map`,
		`filter(keys(body), # == "order_id")`:      "",
		`any(keys(in.ByName), # == "SKU") ? 1 : 2`: "", // a Go map has the names that the program chose
		`"SKU" in keys(body) ? 1 : 2`:              "", // names match in any case
	} {
		in := keyexpr.Variable{Name: "in", Type: keyexpr.TypeFor[struct{ ByName map[string]int }]()}
		_, err := keyexpr.Compile("#{"+expression+"}", schemaOf(t, in, keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()}))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", expression, err, want)
		}
	}
}

// A marshaled object has the same names as the object that the client sent.
func TestDecodeJSON_MarshalsAsSent(t *testing.T) {
	t.Parallel()
	for _, document := range []string{`{}`, `{"ID":1,"a":{"B":[{"C":null}]}}`, `[{"X":"y"}]`, `{"n":18446744073709551615,"s":"ü"}`} {
		value, err := keyexpr.DecodeJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(value); err != nil || string(got) != document {
			t.Errorf("got %s, %v, want %s", got, err, document)
		}
	}
}

// FuzzDecodeJSON checks that DecodeJSON returns the values of encoding/json, or refuses the document
// for a documented reason.
func FuzzDecodeJSON(f *testing.F) {
	for _, document := range []string{`{"a": [1, 2.5, null, true, "x"]}`, `[{"id": 12345678901234567890}]`, `{"a": 1, "A": 2}`, `"\ud800"`, `1e5`, `1e700`, `{} {}`, "\xff", `[[]]`} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		got, err := keyexpr.DecodeJSON(document)
		d := json.NewDecoder(strings.NewReader(string(document)))
		d.UseNumber()
		var want any
		if wantErr := d.Decode(&want); wantErr != nil && err == nil {
			t.Fatalf("%q: encoding/json refuses it: %v", document, wantErr)
		}
		if err != nil {
			return
		}
		if !utf8.Valid(document) {
			t.Fatalf("%q was accepted", document)
		}
		shown, err := json.Marshal(got)
		if _, infinite := errors.AsType[*json.UnsupportedValueError](err); infinite { // 1e700 is infinite, see FromJSONNumber
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := keyexpr.DecodeJSON(shown); err != nil {
			t.Fatalf("%q is shown as %q, which is refused: %v", document, shown, err)
		} else if second, err := json.Marshal(again); err != nil || string(second) != string(shown) {
			t.Fatalf("%q is shown as %q, and then as %q, %v", document, shown, second, err)
		}
	})
}

// DecodeJSON treats two names as equal if and only if encoding/json reads them into the same field.
func TestDecodeJSON_FoldsLikeEncodingJSON(t *testing.T) {
	t.Parallel()
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if unicode.SimpleFold(r) == r || !unicode.IsLetter(r) {
			continue
		}
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			document := `{"` + string(r) + `": 1, "` + string(other) + `": 2}`
			if _, err := keyexpr.DecodeJSON([]byte(document)); err == nil {
				t.Errorf("%q and %q are different names", r, other)
			}
		}
	}
	for _, names := range [][2]string{{"i", "İ"}, {"i", "ı"}, {"ss", "ß"}, {"a", "á"}, {"a", "ａ"}} {
		document := `{"` + names[0] + `": 1, "` + names[1] + `": 2}`
		if _, err := keyexpr.DecodeJSON([]byte(document)); err != nil {
			t.Errorf("%q are the same name: %v", names, err)
		}
	}
}

func TestDecodeJSONAs(t *testing.T) {
	t.Parallel()
	type order struct {
		ID     string `json:"id"`
		Amount any    `json:"amount"`
	}
	typ := reflect.TypeFor[order]()
	got, err := keyexpr.DecodeJSONAs([]byte(`{"ID": "42", "amount": 9007199254740993}`), typ)
	if want := (&order{ID: "42", Amount: json.Number("9007199254740993")}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := keyexpr.DecodeJSONAs([]byte(`{"id": "a", "ID": "b"}`), typ); err == nil {
		t.Error("a repeated name was accepted")
	}
	if got, err := keyexpr.DecodeJSONAs([]byte(`[true]`), nil); err != nil || !reflect.DeepEqual(got, []any{true}) {
		t.Errorf("without a type: got %v, %v", got, err)
	}
}

// secret is a text that does not decode.
type secret string

func (*secret) UnmarshalJSON(text []byte) error { return fmt.Errorf("unknown secret %s", text) }

// The errors go to logs.
func TestDecodeJSONAs_QuotesNoValue(t *testing.T) {
	t.Parallel()
	type order struct {
		ID     string                       `json:"id"`
		Date   time.Time                    `json:"date"`
		Amount json.Number                  `json:"amount"`
		Count  int                          `json:"count,string"`
		Secret secret                       `json:"secret"`
		Labels map[string][]struct{ N int } `json:"labels"`
	}
	const other = "the document is not of type keyexpr_test.order"
	for document, want := range map[string]string{
		`{"id": 4711}`:                        "the field id is not of type string",
		`4711`:                                other,
		`{"date": "4711"}`:                    other,
		`{"amount": "x4711"}`:                 other,
		`{"count": "x4711"}`:                  "", // depends on the version of Go
		`{"ID": 4711}`:                        "the field id is not of type string",
		`{"labels": {"x4711": 1}}`:            "the field labels is not of type []struct { N int }",
		`{"labels": {"x4711": [{"N": "x"}]}}`: "the field labels is not of type int",
		`{"secret": "4711"}`:                  other,
	} {
		if _, err := keyexpr.DecodeJSONAs([]byte(document), reflect.TypeFor[order]()); err == nil || strings.Contains(err.Error(), "4711") || want != "" && err.Error() != want {
			t.Errorf("%s: got %v, want %q", document, err, want)
		}
	}
}
