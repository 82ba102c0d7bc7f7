package keyexpr_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
	"github.com/interlock-go/interlock/keyexpr/protovars"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// router is what a router and a server know of the requests of these tests.
type router struct{ claims any }

func (router) PathValue(string) string       { return "42" }
func (router) Route() string                 { return "/orders/:id" }
func (router) ClientIP() string              { return "192.0.2.1" }
func (router) Metadata(string) []string      { return []string{"42"} }
func (router) Method() string                { return "/shop.v1.Orders/Pay" }
func (router) Peer() string                  { return "192.0.2.1" }
func (r router) Registered(int) (any, error) { return r.claims, nil }
func (r router) request(c any) httpvars.Host { r.claims = c; return r }
func (r router) call(c any) protovars.Host   { r.claims = c; return r }
func registeredClaims() []httpvars.Registered {
	return []httpvars.Registered{{Name: "claims", Type: claimsType}}
}

func registeredInCalls() []protovars.Registered {
	return []protovars.Registered{{Name: "claims", Type: claimsType}}
}

var claimsType = reflect.TypeFor[map[string]any]()

// requestKeys are the keys of a request that has its id in every place.
func requestKeys(tb testing.TB, template, body string, claims any, opts ...keyexpr.Option) ([]string, error) {
	tb.Helper()
	vars, err := httpvars.New(httpvars.Config{PathParams: []string{"id"}, Registered: registeredClaims()})
	if err != nil {
		tb.Fatal(err)
	}
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/?id=42", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Id", "42")
	r.AddCookie(&http.Cookie{Name: "id", Value: "42"})
	return compileFor(tb, template, vars.Schema(), opts...).Keys(vars.Request(r, router{}.request(claims)))
}

func callKeys(tb testing.TB, template string, req proto.Message, claims any, opts ...keyexpr.Option) ([]string, error) {
	tb.Helper()
	vars, err := protovars.New(protovars.Config{Request: req.ProtoReflect().Descriptor(), Registered: registeredInCalls()})
	if err != nil {
		tb.Fatal(err)
	}
	return compileFor(tb, template, vars.Schema(), opts...).Keys(vars.Call(req, router{}.call(claims)))
}

func argumentKeys[T any](tb testing.TB, template string, in T, opts ...keyexpr.Option) ([]string, error) {
	tb.Helper()
	schema, err := keyexpr.Argument(reflect.TypeFor[T]())
	if err != nil {
		tb.Fatal(err)
	}
	return compileFor(tb, template, schema, opts...).Keys(keyexpr.Values{in})
}

type identified struct {
	Text   string
	Signed int64
	Small  uint8
	Any    any
	List   []any
}

// One id is one key wherever it stands and whatever its type: its text is its
// identity.
func TestTemplate_OneIDOneKey(t *testing.T) {
	t.Parallel()
	const want = "order:42:x"
	got := map[string]func(...keyexpr.Option) ([]string, error){}
	for part, body := range map[string]string{
		`42`: ``, `"42"`: ``, `40 + 2`: ``, `path.id`: ``, `query.id`: ``, `query.id[:]`: ``, `header["X-Id"]`: ``, `cookie.id`: ``, `[path.id, 42]`: ``,
		`body.id`: `{"id": 42}`, `body["id"]`: `{"id": "42"}`, `body.id ?? "none"`: `{"id": "42"}`, `string(body.id)`: `{"id": 42}`, `int(body.id)`: `{"id": "42"}`,
		`body.ids[:]`: `{"ids": [42, "42"]}`, `map(body.items, .id)`: `{"items": [{"id": "42"}, {"id": 42}]}`,
		`keys(body)`: `{"42": 0}`, `[body.id]`: `{"id": "42"}`, `body.a ? body.id : 0`: `{"id": "42", "a": true}`,
	} {
		got[part+" of "+body] = func(o ...keyexpr.Option) ([]string, error) {
			return requestKeys(t, `order:#{`+part+`}:x`, body, nil, o...)
		}
	}
	for name, claim := range map[string]any{"text": "42", "int": 42, "uint64": uint64(42), "float64": 42.0, "json.Number": json.Number("42")} {
		claims := map[string]any{"id": claim}
		got["a claim of a request, "+name] = func(o ...keyexpr.Option) ([]string, error) {
			return requestKeys(t, `order:#{claims.id}:x`, ``, claims, o...)
		}
		got["a claim of a call, "+name] = func(o ...keyexpr.Option) ([]string, error) {
			return callKeys(t, `order:#{claims["id"]}:x`, &wrapperspb.BoolValue{}, claims, o...)
		}
		got["an argument, "+name] = func(o ...keyexpr.Option) ([]string, error) {
			return argumentKeys(t, `order:#{in.Any}:x`, identified{Any: claim}, o...)
		}
	}
	for name, req := range map[string]proto.Message{
		"int64": wrapperspb.Int64(42), "uint32": wrapperspb.UInt32(42), "string": wrapperspb.String("42"), "bytes": wrapperspb.Bytes([]byte{0x42}),
	} {
		got["a message, "+name] = func(o ...keyexpr.Option) ([]string, error) {
			return callKeys(t, `order:#{req.value}:x`, req, nil, o...)
		}
	}
	got["metadata"] = func(o ...keyexpr.Option) ([]string, error) {
		return callKeys(t, `order:#{metadata.id}:x`, wrapperspb.Bool(true), nil, o...)
	}
	in := identified{Text: "42", Signed: 42, Small: 42, List: []any{"42", 42, uint8(42), 42.0}}
	for _, part := range []string{"in.Text", "in.Signed", "in.Small", "in.List"} {
		got[part] = func(o ...keyexpr.Option) ([]string, error) { return argumentKeys(t, `order:#{`+part+`}:x`, in, o...) }
	}
	for name, keys := range got {
		for _, opts := range [][]keyexpr.Option{nil, {keyexpr.Strict()}} {
			if got, err := keys(opts...); err != nil || !slices.Equal(got, []string{want}) {
				t.Errorf("%s: got %q, %v, want %s alone", name, got, err, want)
			}
		}
	}
}

// A bool and an enum are their texts, too.
func TestTemplate_OneTextOneKey(t *testing.T) {
	t.Parallel()
	enum := &descriptorpb.FieldDescriptorProto{Type: descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum(), Name: new("true")}
	nameless := &descriptorpb.FieldDescriptorProto{Type: descriptorpb.FieldDescriptorProto_Type(-7).Enum()}
	for name, tt := range map[string]struct {
		want string
		keys func() ([]string, error)
	}{
		"a bool in JSON":       {"true", func() ([]string, error) { return requestKeys(t, `#{body.x}`, `{"x": true}`, nil) }},
		"its text in JSON":     {"true", func() ([]string, error) { return requestKeys(t, `#{body.x}`, `{"x": "true"}`, nil) }},
		"a bool of a message":  {"true", func() ([]string, error) { return callKeys(t, `#{req.value}`, wrapperspb.Bool(true), nil) }},
		"its text in one":      {"true", func() ([]string, error) { return callKeys(t, `#{req.name}`, enum, nil) }},
		"a constant":           {"true", func() ([]string, error) { return requestKeys(t, `#{true}`, ``, nil) }},
		"an enum":              {"TYPE_BOOL", func() ([]string, error) { return callKeys(t, `#{req.type}`, enum, nil) }},
		"its text":             {"TYPE_BOOL", func() ([]string, error) { return requestKeys(t, `#{body.x}`, `{"x": "TYPE_BOOL"}`, nil) }},
		"an enum without name": {"-7", func() ([]string, error) { return callKeys(t, `#{req.type}`, nameless, nil) }},
		"its number":           {"-7", func() ([]string, error) { return requestKeys(t, `#{body.x}`, `{"x": -7}`, nil) }},
	} {
		if got, err := tt.keys(); err != nil || !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: got %q, %v, want %s", name, got, err, tt.want)
		}
	}
}

// A number is a key part if it is written as an integer is, and then exactly as it
// is written: 5.0 is the text 5 for one handler and 5.0 for another.
func TestTemplate_Numbers(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 400)
	for number, want := range map[string]string{
		`0`: "0", `-7`: "-7", `9007199254740993`: "9007199254740993",
		`9223372036854775807`: "9223372036854775807", `9223372036854775808`: "9223372036854775808", `-9223372036854775808`: "-9223372036854775808",
		`18446744073709551615`: "18446744073709551615", `18446744073709551616`: "18446744073709551616", `-9223372036854775809`: "-9223372036854775809",
		digits: digits, `-` + digits: `-` + digits,
		`-0`: "", `0.0`: "", `-0.0`: "", `5.0`: "", `5e0`: "", `1E2`: "", `0.1`: "", `1e400`: "", `-1e400`: "", `1e-300`: "", `1e999999999`: "", `1.5e1`: "",
	} {
		got, err := requestKeys(t, `#{body.id}`, `{"id": `+number+`}`, nil)
		text, textErr := requestKeys(t, `#{body.id}`, `{"id": "`+number+`"}`, nil)
		if textErr != nil || !slices.Equal(text, []string{number}) {
			t.Errorf("the text %.30s: got %q, %v", number, text, textErr)
		}
		switch {
		case want != "" && (err != nil || !slices.Equal(got, []string{want})):
			t.Errorf("%.30s: got %q, %v", number, got, err)
		case want == "" && (err == nil || reasonOf(t, err) != keyexpr.ReasonWrongType):
			t.Errorf("%.30s: got %q, %v, want a wrong type", number, got, err)
		}
	}
}

// A number of Go has no text but its value: a claim that was decoded as float64 is
// the integer that it holds, if it holds one exactly.
func TestTemplate_FloatsOfGo(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		42.0: "42", -42.0: "-42", float32(42): "42", 0.0: "0", float64(1<<53 - 1): "9007199254740991",
		0.5: "", float64(1 << 53): "", -float64(1 << 53): "", 1e300: "",
	} {
		got, err := argumentKeys(t, `#{in.Any}`, identified{Any: value})
		switch {
		case want != "" && (err != nil || !slices.Equal(got, []string{want})):
			t.Errorf("%v: got %q, %v, want %s", value, got, err, want)
		case want == "" && (err == nil || reasonOf(t, err) != keyexpr.ReasonWrongType):
			t.Errorf("%v: got %q, %v, want a wrong type", value, got, err)
		}
	}
}

// In a condition a number that is too large for a float is still above or below.
func TestCondition_HugeNumbers(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{`1e400`: true, `-1e400`: false, `1e999999999`: true, `-1e999999999`: false, `5e0`: true} {
		condition, err := keyexpr.CompileCondition(`body.n > 4`, requestSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := condition.Eval(body(`{"n": ` + number + `}`).env(t)); err != nil || got != want {
			t.Errorf("%s: got %t, %v", number, got, err)
		}
	}
}
