package keyexpr_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/keyexpr"
)

type (
	orderID  int64
	sku      string
	switched bool
	upperKey string
	pointed  struct{ text string } // a text marshaler by pointer only
	failed   struct{ N int }
)

func (p *pointed) MarshalText() ([]byte, error) { return []byte("<" + p.text + ">"), nil }

func (failed) MarshalText() ([]byte, error) { return nil, errors.New("no text") }

type inner struct {
	ID   int
	Deep *inner
}

// wide has a field of every Go type that an expression can read.
type wideStruct struct {
	I8     int8
	I16    int16
	I32    int32
	I64    int64
	U      uint
	U16    uint16
	U32    uint32
	U64    uint64
	Ptr    uintptr
	F32    float32
	F64    float64
	S      string
	B      bool
	Order  orderID
	SKU    sku
	Flag   switched
	PtrPtr **string
	Struct inner
	PtrS   *inner
	Ints   []int
	U8s    [3]int8
	Strs   []sku
	Ptrs   []*inner
	Grid   [][]string
	PtrL   *[]string
	ByName map[string]inner
	ByKey  map[upperKey]int
	PtrM   *map[string]int
	Addr   netip.Addr
	Addrs  []netip.Addr
	When   time.Time
	PtrT   *time.Time
	Points pointed
	PtrP   *pointed
	Failed failed
	Any    any
	Anys   []any
	Num    json.Number
	Raw    map[string]any
}

func fullStruct() *wideStruct {
	text, list, when := "pp", []string{"l1", "l2"}, time.Unix(0, 0).UTC()
	ptr, m := &text, map[string]int{"k": 4}
	return &wideStruct{
		I8: -8, I16: 16, I32: -32, I64: 1<<63 - 1, U: 1, U16: 16, U32: 32, U64: 1<<64 - 1, Ptr: 5, F32: 1.5, F64: 2.5, S: "s", B: true,
		Order: 7, SKU: "sk", Flag: true, PtrPtr: &ptr, Struct: inner{ID: 1, Deep: &inner{ID: 2}}, PtrS: &inner{ID: 3}, Ints: []int{2, 1},
		U8s: [3]int8{3, 2, 1}, Strs: []sku{"b", "a"}, Ptrs: []*inner{{ID: 9}, nil}, Grid: [][]string{{"x", "y"}, {"z"}}, PtrL: &list,
		ByName: map[string]inner{"n": {ID: 5}}, ByKey: map[upperKey]int{"K": 6}, PtrM: &m, Addr: netip.MustParseAddr("192.0.2.1"),
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, When: when, PtrT: &when, Points: pointed{"p"}, PtrP: &pointed{"q"}, Failed: failed{1},
		Any: []any{json.Number("4"), "t"}, Anys: []any{1, "1", uint8(2), 3.0}, Num: "12", Raw: map[string]any{"a": map[string]any{"b": 5.0}},
	}
}

// goKeys are the keys of an argument, or the reason why there are none.
func goKeys[T any](tb testing.TB, expression string, in T) string {
	tb.Helper()
	schema, err := keyexpr.Argument(reflect.TypeFor[T]())
	if err != nil {
		tb.Fatal(err)
	}
	template, err := keyexpr.Compile("#{"+expression+"}", schema)
	if err != nil {
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			tb.Fatalf("%s: %v is no *Error", expression, err)
		}
		return "refused: " + problem.Message
	}
	keys, err := template.Keys(keyexpr.Values{in})
	if err != nil {
		return "!" + reasonOf(tb, err).String()
	}
	return strings.Join(keys, " ")
}

func TestGoType_EveryType(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`in.I8`:                                  "-8",
		`in.I16`:                                 "16",
		`in.I32`:                                 "-32",
		`in.I64`:                                 "9223372036854775807",
		`in.U`:                                   "1",
		`in.U16 + in.U32`:                        "48",
		`in.U64`:                                 "18446744073709551615",
		`in.U64 == 1 ? 1 : 2`:                    "!expression",
		`in.Ptr`:                                 "5",
		`in.F32`:                                 "refused: in.F32 is a float; a key part is a string, a bool, an integer or an enum",
		`in.F32 == 1.5 ? 1 : 2`:                  "1",
		`in.F64 > in.F32 ? 1 : 2`:                "1",
		`in.S`:                                   "s",
		`in.B`:                                   "true",
		`in.Order`:                               "7",
		`in.SKU`:                                 "sk",
		`in.SKU + "-" + string(in.Order)`:        "sk-7",
		`in.Flag`:                                "true",
		`in.PtrPtr`:                              "pp",
		`in.Struct.ID`:                           "1",
		`in.Struct.Deep.ID`:                      "2",
		`in.Struct.Deep.Deep.ID`:                 "!missing",
		`in.Struct.Deep.Deep.ID ?? 0`:            "0",
		`in.PtrS.ID`:                             "3",
		`in.PtrS.Deep?.ID ?? "none"`:             "none",
		`in.Ints`:                                "1 2",
		`in.Ints[1]`:                             "1",
		`in.U8s`:                                 "1 2 3",
		`in.U8s[-1]`:                             "1",
		`in.Strs`:                                "a b",
		`in.Ptrs[0].ID`:                          "9",
		`in.Ptrs[1].ID`:                          "!missing",
		`map(in.Ptrs, .ID ?? 0)`:                 "0 9",
		`in.Grid[0]`:                             "x y",
		`in.Grid[1][0]`:                          "z",
		`len(in.Grid)`:                           "2",
		`in.PtrL`:                                "l1 l2",
		`in.PtrL[1]`:                             "l2",
		`in.ByName.n.ID`:                         "5",
		`in.ByName["n"].ID`:                      "5",
		`in.ByKey.K`:                             "6",
		`in.ByKey["K"]`:                          "6",
		`in.ByKey.k`:                             "!missing", // the case of Go's names counts
		`keys(in.ByKey)`:                         "K",
		`in.PtrM.k`:                              "4",
		`"k" in in.PtrM`:                         "true",
		`in.Addr`:                                "192.0.2.1",
		`in.Addrs`:                               "192.0.2.2",
		`in.When`:                                "1970-01-01T00%3A00%3A00Z",
		`in.PtrT`:                                "1970-01-01T00%3A00%3A00Z",
		`in.Points`:                              "<p>",
		`in.PtrP`:                                "<q>",
		`in.Failed`:                              "!missing",
		`in.Any[0]`:                              "4",
		`in.Any[:]`:                              "4 t",
		`in.Anys`:                                "1 2 3",
		`in.Num`:                                 "12",
		`in.Num + 1`:                             "13",
		`in.Raw.a.b`:                             "5",
		`in.Raw["a"]["b"]`:                       "5",
		`in.Struct`:                              "refused: in.Struct is an object (keyexpr_test.inner); a key part is a string, a bool, an integer or an enum",
		`in.Ptrs`:                                "refused: in.Ptrs is a list, and each element is an object (keyexpr_test.inner); a key part is a string, a bool, an integer or an enum",
		`in.ByName`:                              "refused: in.ByName is a map; a key part is a string, a bool, an integer or an enum",
		`in.Struct + "x"`:                        "refused: + cannot take an object (keyexpr_test.inner)",
		`in.Struct < in.Struct`:                  "refused: < cannot take an object (keyexpr_test.inner)",
		`in.Struct in in.Ptrs`:                   "refused: in cannot take an object (keyexpr_test.inner)",
		`string(in.Struct)`:                      "refused: string cannot take an object (keyexpr_test.inner)",
		`int(in.B)`:                              "refused: int cannot take a bool",
		`keys(in.Ints)`:                          "refused: keys cannot take a list",
		`in.S.x`:                                 "refused: in.S is a string and has no field x",
		`in.I8[0]`:                               "refused: in.I8 is an integer and has no elements",
		`in.Ints.x`:                              "refused: in.Ints is a list; its elements may have a field x",
		`in.S + 1`:                               "refused: + cannot take a string and an integer",
		`in.B + in.B`:                            "refused: + cannot take a bool",
		`in.S - in.S`:                            "refused: - cannot take a string",
		`in.S and in.B`:                          "refused: and cannot take a string",
		`not in.S`:                               "refused: not cannot take a string",
		`-in.S`:                                  "refused: - cannot take a string",
		`in.S == in.I8 ? 1 : 2`:                  "refused: == cannot take a string and an integer",
		`in.S in in.Ints ? 1 : 2`:                "refused: in cannot take a string and an integer",
		`any(in.Ints, .x)`:                       "refused: # is an integer and has no field x",
		`any(in.Ints, # + 1)`:                    "refused: the predicate of any cannot take an integer",
		`in.S ? 1 : 2`:                           "refused: the condition of ? : cannot take a string",
		`map(in.S, #)`:                           "refused: map cannot take a string",
		`(in.B ? in.Struct : in.Struct.Deep).ID`: "1",
		`first(in.Ptrs).ID`:                      "9",
		`last(in.Ptrs)?.ID ?? 0`:                 "0",
		`map(filter(in.Ptrs, (.ID ?? 0) > 1), .ID)`: "9",
		`[in.Struct, in.PtrS][1].ID`:                "3",
		`(in.PtrS ?? in.Struct).ID`:                 "3",
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			if got := goKeys(t, expression, fullStruct()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// What a zero struct has is missing or empty, but for bools, which are false.
func TestGoType_ZeroOfEveryType(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`in.I8`: "!missing", `in.I64`: "!missing", `in.U64`: "!missing", `in.Order`: "!missing", `in.S`: "!empty", `in.SKU`: "!empty",
		`in.B`: "false", `in.Flag`: "false", `in.PtrPtr`: "!missing", `in.Struct.ID`: "!missing", `in.PtrS.ID`: "!missing", `in.Ints`: "!empty",
		`in.U8s`: "0", `in.Ints[0]`: "!missing", `in.PtrL`: "!missing", `in.ByName.n.ID`: "!missing", `in.PtrM.k`: "!missing", `in.Addr`: "!empty",
		`in.When`: "!empty", `in.PtrT`: "!missing", `in.Points`: "!empty", `in.PtrP`: "!missing", `in.Any`: "!missing", `in.Any.x`: "!missing", `in.Anys`: "!empty",
		`in.Num`: "!missing", `in.Raw.a`: "!missing", `in.I8 ?? 0`: "0", `in.S ?? "none"`: "none", `in.When ?? "never"`: "never", `len(in.Ints)`: "0",
		`in.U8s[0]`: "0", `in.I8 == 0`: "true", `in.S == ""`: "true", `in.F64 == 0 ? 1 : 2`: "1", `in.I8 + 1`: "1", `"x" + in.S`: "!empty",
	} {
		if got := goKeys(t, expression, wideStruct{}); got != want {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

type (
	named struct {
		ID    int    `json:"id"`
		Name  string `json:"name,omitempty"`
		Kept  string
		Gone  string `json:"-"`
		Dash  string `json:"-,"` //nolint:staticcheck // what encoding/json makes of it is the question
		Empty string `json:",omitempty"`
	}
	left struct {
		Both  string `json:"both"`
		Left  string `json:"left"`
		Outer string `json:"outer"`
	}
	Right struct {
		Both  string `json:"both"`
		Right string `json:"right"`
	}
	tagged struct {
		Plain string `json:"Shared"`
	}
	untagged struct {
		Shared string
	}
	embedding struct {
		left
		*Right
		Tagged tagged `json:"tagged"`
		Outer  string `json:"outer"`
	}
	dominated struct {
		tagged
		untagged
	}
	asField struct {
		Right `json:"named"`
	}
	recursive struct {
		*recursive     //nolint:unused // it is there to be embedded
		ID         int `json:"id"`
	}
)

// The names of JSON are those that encoding/json finds, which is asked for each.
func TestGoType_JSONNamesAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	names := []string{"id", "ID", "name", "Name", "Kept", "Gone", "-", "Empty", "both", "left", "right", "outer", "Shared", "Plain", "tagged", "named", "Left", "recursive"}
	checkJSONNames[named](t, names)
	checkJSONNames[left](t, names)
	checkJSONNames[embedding](t, names)
	checkJSONNames[dominated](t, names)
	checkJSONNames[asField](t, names)
	checkJSONNames[recursive](t, names)
}

func checkJSONNames[T any](t *testing.T, names []string) {
	t.Helper()
	typ, err := keyexpr.GoType(reflect.TypeFor[T](), keyexpr.JSONNames)
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, keyexpr.Variable{Name: "body", Type: typ})
	for _, name := range names {
		var in T
		d := json.NewDecoder(strings.NewReader(`{"` + name + `": {}}`))
		d.DisallowUnknownFields()
		err := d.Decode(&in)
		exact := err == nil || !strings.Contains(err.Error(), "unknown field")
		if shown, err := json.Marshal(filled[T]()); err != nil {
			t.Fatal(err)
		} else if !strings.Contains(string(shown), `"`+name+`":`) {
			exact = false // encoding/json finds it in another case
		}
		_, err = keyexpr.Compile(`#{body["`+name+`"] == nil}`, schema)
		if known := err == nil || !strings.Contains(err.Error(), "has no field"); known != exact {
			t.Errorf("%T: encoding/json knows %s: %v, expressions: %v", in, name, exact, known)
		}
	}
}

// filled is a value without an empty field, as far as one level of embedding goes.
func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), 2)
	return v
}

func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString("x")
		}
	case reflect.Int:
		if v.CanSet() {
			v.SetInt(1)
		}
	case reflect.Pointer:
		if v.CanSet() && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth)
		}
	}
}

// A value of the declared type, a pointer to it and pointers to those are the same.
func TestGoType_Pointers(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[inner]())
	if err != nil {
		t.Fatal(err)
	}
	template := compileFor(t, `#{in.ID}`, schema)
	one := inner{ID: 7}
	pointer := &one
	for _, in := range []any{one, pointer, &pointer} {
		if key, err := template.Key(keyexpr.Values{in}); err != nil || key != "7" {
			t.Errorf("%T: got %q, %v", in, key, err)
		}
	}
	var none *inner
	for _, in := range []any{nil, none, &none} {
		if _, err := template.Key(keyexpr.Values{in}); reasonOf(t, err) != keyexpr.ReasonMissing {
			t.Errorf("%T: got %v", in, err)
		}
	}
}
