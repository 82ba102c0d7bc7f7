package keyexpr_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/keyexpr"
)

// uuid is a text marshaler like the UUID types of common libraries.
type uuid [2]byte

func (u uuid) MarshalText() ([]byte, error) {
	return []byte(strings.ToUpper(string(u[:]))), nil
}

type level int

type base struct {
	Tenant string `json:"tenant"`
	Shadow string
}

type argument struct {
	base
	*Extra
	ID      int64             `json:"id"`
	Big     uint64            `json:"big"`
	Small   uint8             `json:"small"`
	Level   level             `json:"level"`
	Name    string            `json:"name,omitempty"`
	Flag    bool              `json:"flag"`
	Price   float64           `json:"price"`
	Note    *string           `json:"note"`
	Count   *int              `json:"count"`
	Next    *argument         `json:"next"`
	Items   []item            `json:"items"`
	Refs    []*item           `json:"refs"`
	Tags    [2]string         `json:"tags"`
	Labels  map[string]string `json:"labels"`
	Any     any               `json:"any"`
	Number  json.Number       `json:"number"`
	UUID    uuid              `json:"uuid"`
	When    time.Time         `json:"when"`
	Hidden  string            `json:"-"`
	Data    []byte            `json:"data"`
	private string
}

type Extra struct {
	Code string `json:"code"`
}

func TestArgument_Key(t *testing.T) {
	t.Parallel()
	note, one := "n", 1
	full := &argument{
		base: base{Tenant: "acme"}, Extra: &Extra{Code: "c"}, ID: 7, Big: 1<<64 - 1, Small: 9, Level: 3, Name: "x", Note: &note, Count: &one,
		Next: &argument{ID: 8, Next: &argument{Name: "deep"}}, Items: []item{{SKU: "b"}, {SKU: "a"}}, Refs: []*item{{SKU: "r"}},
		Tags: [2]string{"t0", "t1"}, Labels: map[string]string{"k": "v"}, Any: map[string]any{"x": json.Number("9007199254740993")},
		Number: "12", UUID: uuid{'a', 'b'}, When: time.Unix(0, 0).UTC(), private: "p",
	}
	tests := []struct {
		template string
		want     []string
	}{
		{`o:#{in.ID}`, []string{"o:7"}},
		{`o:#{in.Big}`, []string{"o:18446744073709551615"}},
		{`o:#{in.Name}`, []string{"o:x"}},
		{`o:#{in.Tenant}`, []string{"o:acme"}},
		{`o:#{in.Code}`, []string{"o:c"}},
		{`o:#{in.Next.ID}`, []string{"o:8"}},
		{`o:#{in.Next.Next.Name}`, []string{"o:deep"}},
		{`o:#{in.Items[0].SKU}`, []string{"o:b"}},
		{`o:#{map(in.Items, .SKU)}`, []string{"o:a", "o:b"}},
		{`o:#{in.Any.x}`, []string{"o:9007199254740993"}},
		{`o:#{in.UUID}`, []string{"o:AB"}},
		{`o:#{in.Price > 1 ? "expensive" : "cheap"}`, []string{"o:cheap"}},
		{`o:#{"k" in in.Labels ? in.ID : 0}`, []string{"o:7"}},
		{`o:#{in.Name in ["x"] ? "yes" : "no"}`, []string{"o:yes"}},
		{`o:#{not in.Flag ? "yes" : "no"}`, []string{"o:yes"}},
		{`o:#{in.Name not in ["x"] ? "yes" : "no"}`, []string{"o:no"}},
		{`o:#{map(filter(in.Items, .SKU in in.Labels or # != nil), .SKU)}`, []string{"o:a", "o:b"}},
	}
	schema := argumentSchema[argument](t)
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			t.Parallel()
			template := compileFor(t, tt.template, schema)
			for _, in := range []any{full, *full} {
				got, err := template.Keys(keyexpr.Values{in})
				if err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("%T: got %q, %v, want %q", in, got, err, tt.want)
				}
			}
		})
	}
}

func TestArgument_NotSet(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[*argument](t)
	tests := []struct {
		template string
		want     keyexpr.Reason
	}{
		{`o:#{string(in.ID)}`, keyexpr.ReasonMissing},
		{`o:#{in.Next.Next.Name}`, keyexpr.ReasonMissing},
		{`o:#{in.Code}`, keyexpr.ReasonMissing},
		{`o:#{map(in.Items, .SKU)}`, keyexpr.ReasonEmpty},
	}
	for _, tt := range tests {
		template := compileFor(t, tt.template, schema)
		key, err := template.Keys(keyexpr.Values{&argument{}})
		if err == nil || reasonOf(t, err) != tt.want {
			t.Errorf("%s: got %q, %v, want %v", tt.template, key, err, tt.want)
		}
		_, err = template.Keys(keyexpr.Values{(*argument)(nil)})
		if err == nil || reasonOf(t, err) != keyexpr.ReasonMissing {
			t.Errorf("%s of nil: got %v, want missing", tt.template, err)
		}
	}
	got, err := compileFor(t, `o:#{in.ID ?? 0}:#{in.Flag}`, schema).Key(keyexpr.Values{&argument{}})
	if err != nil || got != "o:0:false" {
		t.Errorf("a zero under ??: got %q, %v", got, err)
	}
}

func TestArgument_Scalar(t *testing.T) {
	t.Parallel()
	type orderID string
	tests := []struct {
		typ  reflect.Type
		in   any
		want string
	}{
		{reflect.TypeFor[string](), "a", "o:a"},
		{reflect.TypeFor[orderID](), orderID("12"), "o:12"},
		{reflect.TypeFor[int32](), int32(5), "o:5"},
		{reflect.TypeFor[*int](), new(int), "o:0"},
		{reflect.TypeFor[any](), "12", "o:12"},
		{reflect.TypeFor[any](), 12, "o:12"},
	}
	for _, tt := range tests {
		t.Run(tt.typ.String(), func(t *testing.T) {
			t.Parallel()
			schema, err := keyexpr.Argument(tt.typ)
			if err != nil {
				t.Fatal(err)
			}
			got, err := compileFor(t, `o:#{in}`, schema).Key(keyexpr.Values{tt.in})
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// A value whose type differs from the declared one is an error, never a panic.
func TestArgument_OtherType(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[argument](t)
	for _, template := range []string{`o:#{in.ID}`, `o:#{in.Name + "x"}`, `o:#{map(in.Items, .SKU)}`, `o:#{in.Next.ID + 1}`} {
		for _, in := range []any{1, "x", struct{}{}, []int{1}, map[string]any{"ID": 1}, func() {}} {
			if key, err := compileFor(t, template, schema).Keys(keyexpr.Values{in}); err == nil {
				t.Errorf("%s with %T: got %q", template, in, key)
			}
		}
	}
}

func TestGoType_JSONNames(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, keyexpr.Variable{Name: "body", Type: keyexpr.JSONType(reflect.TypeFor[argument]())})
	var in argument
	text := `{"id": 9007199254740993, "tenant": "acme", "Shadow": "s", "code": "c", "items": [{"SKU": "x"}], "any": {"k": true}}`
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	got, err := compileFor(t, `#{body.id}:#{body.tenant}:#{body.Shadow}:#{body.code}:#{body.items[0].SKU}:#{body.any.k}`, schema).Key(keyexpr.Values{&in})
	if want := "9007199254740993:acme:s:c:x:true"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, name := range []string{"ID", "Hidden", "private", "base", "Extra"} {
		_, err := keyexpr.Compile(`o:#{body.`+name+`}`, schema)
		if _, ok := errors.AsType[*keyexpr.Error](err); !ok {
			t.Errorf("body.%s: got %v, want an *Error", name, err)
		}
	}
}

// Expressions do not change values that an application shares between requests.
func TestArgument_DoesNotChangeValue(t *testing.T) {
	t.Parallel()
	type session struct{ Claims map[string]any }
	realm := map[string]any{"tenant": json.Number("7"), "roles": []any{json.Number("1"), "x"}}
	in := session{Claims: map[string]any{"realm": realm}}
	s := argumentSchema[session](t)
	template := compileFor(t, `t:#{in.Claims.realm.tenant}:#{map(in.Claims.realm.roles[:1], #)}`, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if keys, err := template.Keys(keyexpr.Values{in}); err != nil || len(keys) != 1 || keys[0] != "t:7:1" {
					t.Errorf("got %q, %v", keys, err)
				}
			}
		})
	}
	wg.Wait()
	if got := realm["tenant"]; got != json.Number("7") {
		t.Errorf("the argument now has %T %v", got, got)
	}
}

type panicking struct{ keyexpr.Values }

func (panicking) Value(int) (any, error) { panic("no session") }

type (
	orderID  int64
	sku      string
	switched bool
	upperKey string
	pointed  struct{ text string } // only the pointer is a text marshaler
	failed   struct{ N int }
)

func (p *pointed) MarshalText() ([]byte, error) { return []byte("<" + p.text + ">"), nil }

func (failed) MarshalText() ([]byte, error) { return nil, errors.New("no text") }

type inner struct {
	ID   int
	Deep *inner
}

// wide has fields of all Go types that an expression can read.
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

// goKeys returns the keys of an argument, or the reason why there are none.
func goKeys[T any](tb testing.TB, expression string, in T) string {
	tb.Helper()
	schema := argumentSchema[T](tb)
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

func TestGoType_AllTypes(t *testing.T) {
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
		`in.F32`:                                 "refused: in.F32 is a float; a key part is a string, a bool, an integer or an enum: compute its text in the program, as a field of in",
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
		`in.ByKey.k`:                             "!missing", // the case of Go names matters
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
		`in.S and in.B ? 1 : 2`:                  "refused: and cannot take a string",
		`not in.S ? 1 : 2`:                       "refused: not cannot take a string",
		`-in.S`:                                  "refused: - cannot take a string",
		`in.S == in.I8 ? 1 : 2`:                  "refused: == cannot take a string and an integer",
		`in.S in in.Ints ? 1 : 2`:                "refused: in cannot take a string and an integer",
		`any(in.Ints, .x)`:                       "refused: # is an integer and has no field x",
		`any(in.Ints, # + 1) ? 1 : 2`:            "refused: the predicate of any cannot take an integer",
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

// The fields of a zero struct are missing or empty, except for bools, which are false.
func TestGoType_ZeroOfAllTypes(t *testing.T) {
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
		Dash  string `json:"-,"` //nolint:staticcheck // the test shows how encoding/json reads this tag
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

// JSONType finds the same names as encoding/json, which decodes each of them.
func TestGoType_JSONNamesMatchEncodingJSON(t *testing.T) {
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
	schema := schemaOf(t, keyexpr.Variable{Name: "body", Type: keyexpr.JSONType(reflect.TypeFor[T]())})
	for _, name := range names {
		var in T
		d := json.NewDecoder(strings.NewReader(`{"` + name + `": {}}`))
		d.DisallowUnknownFields()
		err := d.Decode(&in)
		exact := err == nil || !strings.Contains(err.Error(), "unknown field")
		if shown, err := json.Marshal(withFields[T]()); err != nil {
			t.Fatal(err)
		} else if !strings.Contains(string(shown), `"`+name+`":`) {
			exact = false // encoding/json finds the field by a name in another case
		}
		_, err = keyexpr.Compile(`#{body["`+name+`"] == nil}`, schema)
		if known := err == nil || !strings.Contains(err.Error(), "has no field"); known != exact {
			t.Errorf("%T: encoding/json knows %s: %v, expressions: %v", in, name, exact, known)
		}
	}
}

// withFields fills all fields of a value, down to one level of embedding.
func withFields[T any]() T {
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

// A value of the declared type and all pointers to it, direct or indirect, make the same key.
func TestGoType_Pointers(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[inner](t)
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

// holder has fields of interface types for documents.
type holder struct {
	Doc   any
	Docs  []any
	Named map[string]any
}

// document returns a value as encoding/json decodes it into an interface.
func document(random *rand.Rand, depth int) any {
	if depth == 0 {
		return []any{"text", "", "42", 42.0, -7.0, 2.5, true, false, nil, json.Number("42"), json.Number("18446744073709551615"), json.Number("123456789012345678901")}[random.IntN(12)]
	}
	if random.IntN(2) == 0 {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = document(random, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for _, name := range []string{"a", "b", "xs", "id"} {
		if random.IntN(3) > 0 {
			m[name] = document(random, depth-1)
		}
	}
	return m
}

// questions contains expressions about a document. @ stands for the document.
var questions = []string{
	`@`, `@.a`, `@.a.b`, `@.xs[0]`, `@.xs[-1].id`, `@[0]`, `@["a"]["b"]`, `@[:]`, `@.xs[:]`, `map(@, #)`, `map(@.xs, .id)`, `filter(@.xs, # == 42)`, `len(@)`, `len(@.xs)`,
	`keys(@)`, `"a" in @`, `"a" in @.a`, `42 in @.xs`, `@ == nil`, `@.a == @.b`, `@.a ?? "none"`, `@.xs[0].a ?? @.id ?? "none"`, `string(@.id)`, `@.id + 1`, `"x" + @.id`,
	`first(@.xs)`, `(@.a ?? @).id`, `any(@.xs, .a == 42)`, `@.xs == @.xs`, `@ == @`,
	`@.a ? 1 : 2`, `@.id > 7 ? 1 : 2`,
}

// A document in a Go interface yields the same keys as the same document in a variable. Only the document in
// the variable is converted as a whole.
func TestGoType_InterfaceReadsLikeDocument(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t, keyexpr.Variable{Name: "in", Type: keyexpr.TypeFor[holder]()}, keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()})
	random := rand.New(rand.NewPCG(3, 4))
	documents := make([]any, 60)
	for i := range documents {
		documents[i] = document(random, i%4)
	}
	for _, question := range questions {
		whole := compileOf(t, question, "body", schema)
		for _, place := range []string{"in.Doc", "in.Docs[0]", `in.Named.x`, `in.Named["x"]`, `in.Docs[-1]`} {
			partial := compileOf(t, question, place, schema)
			for _, d := range documents {
				env := keyexpr.Values{&holder{Doc: d, Docs: []any{d}, Named: map[string]any{"x": d}}, toRequest(t, d)}
				want, reason := answerOf(t, whole, env)
				got, gotReason := answerOf(t, partial, env)
				if !slices.Equal(got, want) || gotReason != reason {
					t.Errorf("%s of %#v in %s: got %q, %v, want %q, %v", question, d, place, got, gotReason, want, reason)
				}
			}
		}
	}
}

// toRequest encodes a document and decodes it with DecodeJSON, like the body of a request.
func toRequest(tb testing.TB, document any) any {
	tb.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		tb.Fatal(err)
	}
	value, err := keyexpr.DecodeJSON(text)
	if err != nil {
		tb.Fatal(err)
	}
	return value
}

func compileOf(tb testing.TB, question, place string, schema *keyexpr.Schema) *keyexpr.Template {
	tb.Helper()
	expression := strings.ReplaceAll(question, "@", place)
	return compileFor(tb, "#{"+expression+"}", schema)
}

func answerOf(tb testing.TB, template *keyexpr.Template, env keyexpr.Env) ([]string, keyexpr.Reason) {
	tb.Helper()
	keys, err := template.Keys(env)
	if err != nil {
		return nil, reasonOf(tb, err)
	}
	return keys, 0
}

// Reading a Go value never changes it.
func TestGoType_DoesNotChangeDocuments(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[holder](t)
	d := map[string]any{"id": 42.0, "xs": []any{3.0, 1.0, map[string]any{"b": 2.0}}, "n": json.Number("7")}
	before := fmt.Sprintf("%#v", d)
	for _, question := range questions {
		_, _ = compileOf(t, question, "in.Doc", schema).Keys(keyexpr.Values{&holder{Doc: d}})
	}
	if after := fmt.Sprintf("%#v", d); after != before {
		t.Errorf("was %s, is %s", before, after)
	}
}

// An expression can look up an entry of a large Go map but cannot list its entries. That does not depend on
// the place or the static type of the map.
func TestGoType_LargeMaps(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[holder](t)
	large := object{}
	for i := range 1001 {
		large["k"+itoa(i)] = i
	}
	env := keyexpr.Values{&holder{Doc: large, Named: large, Docs: []any{large}}}
	for expression, want := range map[string]string{
		`@.k7`: "7", `"k7" in @ ? 1 : 2`: "1", `"no" in @ ? 1 : 2`: "2", `@.no ?? "none"`: "none", `(@ ?? []).k7`: "7",
		`keys(@)`: "!too_many", `len(@)`: "!too_many", `@.no`: "!missing", `@.k7.x`: "!wrong_type",
	} {
		for _, place := range []string{"in.Doc", "in.Named", "in.Docs[0]"} {
			keys, reason := answerOf(t, compileOf(t, expression, place, schema), env)
			got := "!" + reason.String()
			if reason == 0 {
				got = keys[0]
			}
			if got != want {
				t.Errorf("%s of %s: got %q, want %q", expression, place, got, want)
			}
		}
	}
}

// Reading a value that contains itself terminates.
func TestGoType_CyclicValues(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[holder](t)
	list := []any{1.0, nil}
	list[1] = list
	m := map[string]any{"id": 7.0}
	m["self"] = m
	for _, doc := range []any{list, m} {
		for _, question := range questions {
			_, _ = answerOf(t, compileOf(t, question, "in.Doc", schema), keyexpr.Values{&holder{Doc: doc}})
		}
	}
	if key, err := compileFor(t, `#{in.Doc.self.self.self.id}`, schema).Key(keyexpr.Values{&holder{Doc: m}}); err != nil || key != "7" {
		t.Errorf("got %q, %v", key, err)
	}
	if _, err := compileFor(t, `#{in.Doc == in.Doc ? 1 : 2}`, schema).Key(keyexpr.Values{&holder{Doc: list}}); reasonOf(t, err) != keyexpr.ReasonTooLong {
		t.Errorf("got %v", err)
	}
}

type (
	first  struct{ ID, Name string }
	second struct{ ID string }
	mixed  struct {
		First  first
		Second second
		Firsts []first
		Bytes  map[string][]byte
		Funcs  []func()
		Chans  *chan int
		Deep   [][][][][][][][][][][][][][][][][][]int
		Keys   map[int]string
	}
)

// If a value may have one of two types, its fields are known only if both types are the same.
func TestGoType_UnifiesTwoTypes(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[mixed](t)
	in := keyexpr.Values{&mixed{First: first{"1", "a"}, Second: second{"2"}, Firsts: []first{{"3", "b"}}}}
	for expression, want := range map[string]string{
		`(in.First.Name == "a" ? in.First : in.Firsts[0]).ID`: "1", `[in.First, in.Firsts[0]][1].ID`: "3", `map([in.Firsts[0], in.First], .ID)`: "1 3",
		`(in.First.Name == "b" ? in.First : in.Firsts[0]).Name`: "b", `in.Firsts[0].ID`: "3", `first(in.Firsts).ID`: "3",
	} {
		keys, err := compileFor(t, `#{`+expression+`}`, schema).Keys(in)
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
	for _, expression := range []string{`(in.First.Name == "a" ? in.First : in.Second).ID`, `[in.First, in.Second][0].ID`} {
		_, err := compileFor(t, `#{`+expression+`}`, schema).Keys(in)
		if reasonOf(t, err) != keyexpr.ReasonWrongType {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

// A field whose type no expression can read is an error only if an expression uses it.
func TestGoType_UnusableFields(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[mixed](t)
	for _, field := range []string{"Bytes", "Funcs", "Chans", "Deep", "Keys"} {
		_, err := keyexpr.Compile(`o:#{in.`+field+`}`, schema)
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Column != 8 || !strings.Contains(problem.Message, "the field "+field+" of keyexpr_test.mixed has a type that expressions cannot use") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
