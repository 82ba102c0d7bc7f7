package keyexpr_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/keyexpr"
)

// uuid is a text marshaler like those of the usual libraries.
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
		{`o:#{in.Small}`, []string{"o:9"}},
		{`o:#{in.Level}`, []string{"o:3"}},
		{`o:#{in.Name}`, []string{"o:x"}},
		{`o:#{in.Flag}`, []string{"o:false"}},
		{`o:#{in.Note}`, []string{"o:n"}},
		{`o:#{in.Count}`, []string{"o:1"}},
		{`o:#{in.Tenant}`, []string{"o:acme"}},
		{`o:#{in.Code}`, []string{"o:c"}},
		{`o:#{in.Next.ID}`, []string{"o:8"}},
		{`o:#{in.Next.Next.Name}`, []string{"o:deep"}},
		{`o:#{in.Items[0].SKU}`, []string{"o:b"}},
		{`o:#{in.Refs[0].SKU}`, []string{"o:r"}},
		{`o:#{in.Tags}`, []string{"o:t0", "o:t1"}},
		{`o:#{map(in.Items, .SKU)}`, []string{"o:a", "o:b"}},
		{`o:#{in.Labels.k}`, []string{"o:v"}},
		{`o:#{in.Labels["k"]}`, []string{"o:v"}},
		{`o:#{in.Any.x}`, []string{"o:9007199254740993"}},
		{`o:#{in.Number}`, []string{"o:12"}},
		{`o:#{in.UUID}`, []string{"o:AB"}},
		{`o:#{in.When}`, []string{"o:1970-01-01T00%3A00%3A00Z"}},
		{`o:#{in.Price > 1 ? "dear" : "cheap"}`, []string{"o:cheap"}},
		{`o:#{"k" in in.Labels ? in.ID : 0}`, []string{"o:7"}},
		{`o:#{in.Name in ["x"] ? "yes" : "no"}`, []string{"o:yes"}},
		{`o:#{not in.Flag ? "yes" : "no"}`, []string{"o:yes"}},
		{`o:#{in.Name not in ["x"] ? "yes" : "no"}`, []string{"o:no"}},
		{`o:#{map(filter(in.Items, .SKU in in.Labels or # != nil), .SKU)}`, []string{"o:a", "o:b"}},
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[argument]())
	if err != nil {
		t.Fatal(err)
	}
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
	schema, err := keyexpr.Argument(reflect.TypeFor[*argument]())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		template string
		want     keyexpr.Reason
	}{
		{`o:#{in.ID}`, keyexpr.ReasonMissing},
		{`o:#{string(in.ID)}`, keyexpr.ReasonMissing},
		{`o:#{in.Name}`, keyexpr.ReasonEmpty},
		{`o:#{in.Note}`, keyexpr.ReasonMissing},
		{`o:#{in.Next.ID}`, keyexpr.ReasonMissing},
		{`o:#{in.Next.Next.Name}`, keyexpr.ReasonMissing},
		{`o:#{in.Code}`, keyexpr.ReasonMissing},
		{`o:#{in.UUID}`, keyexpr.ReasonEmpty},
		{`o:#{in.Number}`, keyexpr.ReasonMissing},
		{`o:#{in.Items[0].SKU}`, keyexpr.ReasonMissing},
		{`o:#{in.Labels.k}`, keyexpr.ReasonMissing},
		{`o:#{map(in.Items, .SKU)}`, keyexpr.ReasonEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			t.Parallel()
			template := compileFor(t, tt.template, schema)
			key, err := template.Keys(keyexpr.Values{&argument{}})
			if err == nil || reasonOf(t, err) != tt.want {
				t.Errorf("got %q, %v, want %v", key, err, tt.want)
			}
			_, err = template.Keys(keyexpr.Values{(*argument)(nil)})
			if err == nil || reasonOf(t, err) != keyexpr.ReasonMissing {
				t.Errorf("nil argument: got %v, want missing", err)
			}
		})
	}
	got, err := compileFor(t, `o:#{in.ID ?? 0}:#{in.Flag}`, schema).Key(keyexpr.Values{&argument{}})
	if err != nil || got != "o:0:false" {
		t.Errorf("a zero that is admitted: got %q, %v", got, err)
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

// A value of another type than declared is an error, never a panic.
func TestArgument_OtherType(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[argument]())
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{`o:#{in.ID}`, `o:#{in.Name + "x"}`, `o:#{map(in.Items, .SKU)}`, `o:#{in.Next.ID + 1}`} {
		for _, in := range []any{1, "x", struct{}{}, []int{1}, map[string]any{"ID": 1}, func() {}} {
			if key, err := compileFor(t, template, schema).Keys(keyexpr.Values{in}); err == nil {
				t.Errorf("%s with %T: got %q", template, in, key)
			}
		}
	}
}

func TestGoType_Unusable(t *testing.T) {
	t.Parallel()
	type endless []endless
	for _, typ := range []reflect.Type{
		reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[complex128](), reflect.TypeFor[[]byte](),
		reflect.TypeFor[map[int]string](), reflect.TypeFor[endless](), reflect.TypeFor[[]func()](),
	} {
		if _, err := keyexpr.Argument(typ); err == nil {
			t.Errorf("%v is accepted", typ)
		}
	}
}

func TestGoType_JSONNames(t *testing.T) {
	t.Parallel()
	typ, err := keyexpr.GoType(reflect.TypeFor[argument](), keyexpr.JSONNames)
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, keyexpr.Variable{Name: "body", Type: typ})
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

// Values that an application shares between requests are only read.
func TestArgument_SharedValueIsNotChanged(t *testing.T) {
	t.Parallel()
	type session struct{ Claims map[string]any }
	realm := map[string]any{"tenant": json.Number("7"), "roles": []any{json.Number("1"), "x"}}
	in := session{Claims: map[string]any{"realm": realm}}
	s, err := keyexpr.Argument(reflect.TypeFor[session]())
	if err != nil {
		t.Fatal(err)
	}
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

// A panic of the application is no failure of the request, wherever it happens.
func TestRegistered_PanicPassesThrough(t *testing.T) {
	t.Parallel()
	s := requestSchema(t)
	condition, err := keyexpr.CompileCondition(`principal == "x"`, s)
	if err != nil {
		t.Fatal(err)
	}
	plain, computed := compileFor(t, `#{principal}`, s), compileFor(t, `#{upper(principal)}`, s)
	for name, run := range map[string]func() error{
		"reference":  func() error { _, err := plain.Key(panicking{}); return err },
		"expression": func() error { _, err := computed.Key(panicking{}); return err },
		"condition":  func() error { _, err := condition.Eval(panicking{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got := recover(); got != "no session" {
					t.Errorf("recovered %v", got)
				}
			}()
			t.Errorf("no panic, but %v", run())
		})
	}
}
