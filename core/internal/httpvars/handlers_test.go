package httpvars_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// order is the type that a handler decodes a body into, with ids of one type.
type order[T any] struct {
	ID      *T                   `json:"id"`
	OrderID *T                   `json:"orderId"`
	Key     *T                   `json:"key"`
	SKU     *T                   `json:"sku"`
	Order   *order[T]            `json:"order"`
	Lines   []*order[T]          `json:"lines"`
	ByName  map[string]*order[T] `json:"byName"`
	IDs     []*T                 `json:"ids"`
}

// seen contains the ids that a handler reads: texts, and nil for a missing id.
type seen struct {
	id, orderID, key, sku *string
	order                 *seen
	lines, ids            []*seen
	byName                map[string]*seen
}

func see[T any](o *order[T], text func(T) (string, bool)) *seen {
	if o == nil {
		return nil
	}
	one := func(id *T) *string {
		if id == nil {
			return nil
		}
		if t, ok := text(*id); ok {
			return &t
		}
		return &lossy
	}
	s := &seen{one(o.ID), one(o.OrderID), one(o.Key), one(o.SKU), see(o.Order, text), nil, nil, map[string]*seen{}}
	for _, l := range o.Lines {
		s.lines = append(s.lines, see(l, text))
	}
	for _, id := range o.IDs {
		s.ids = append(s.ids, &seen{id: one(id)})
	}
	for name, l := range o.ByName {
		s.byName[name] = see(l, text)
	}
	return s
}

// lossy stands for an id whose exact text the handler has lost. Tests compare its address.
var lossy = "\x00lossy"

func decoded[T any](body string, text func(T) (string, bool), numbers bool) (*seen, error) {
	d := json.NewDecoder(strings.NewReader(body))
	if numbers {
		d.UseNumber()
	}
	var o order[T]
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	return see(&o, text), nil
}

// handlers contains the different ways in which handlers decode a body. An error means that the handler
// refuses the request.
var handlers = map[string]func(body string) (*seen, error){
	"int64": func(b string) (*seen, error) {
		return decoded(b, func(n int64) (string, bool) { return strconv.FormatInt(n, 10), true }, false)
	},
	"string": func(b string) (*seen, error) {
		return decoded(b, func(s string) (string, bool) { return s, true }, false)
	},
	"json.Number": func(b string) (*seen, error) {
		return decoded(b, func(n json.Number) (string, bool) { return n.String(), true }, false)
	},
	"bool": func(b string) (*seen, error) {
		return decoded(b, func(v bool) (string, bool) { return strconv.FormatBool(v), true }, false)
	},
	"any":         func(b string) (*seen, error) { return decoded(b, anyText, false) },
	"any exactly": func(b string) (*seen, error) { return decoded(b, anyText, true) },
}

// anyText returns the text of an id of unknown type. A float64 beyond 2^53 has lost its text. Objects and
// lists have no text.
func anyText(v any) (string, bool) {
	switch x := v.(type) {
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), math.Abs(x) < 1<<53
	case string, bool, json.Number:
		return fmt.Sprint(x), true
	}
	return "", false
}

// views maps templates to the ids that each handler reads for them. none marks a missing id.
var views = map[string]func(s *seen) []*string{
	`body.id`: own, `body["id"]`: own, `(body.nowhere ?? body).id`: own,
	`[body][0].id`: own, `map([body], .id)`: own,
	`"id" in body ? body.id : "none"`: idOrNone(own), `body.id ?? "none"`: idOrNone(own),
	`body.id == nil ? "none" : body.id`: idOrNone(own), `"id" in keys(body) ? body.id : "none"`: idOrNone(own), `string(body.id)`: own,
	`body.orderId`: func(s *seen) []*string { return []*string{s.orderID} }, `body.key`: func(s *seen) []*string { return []*string{s.key} },
	`body["sku"]`:   func(s *seen) []*string { return []*string{s.sku} },
	`body.order.id`: inOrder, `(body.order ?? []).id`: inOrder, `body["order"]?.id`: inOrder, `body.order.id ?? "none"`: idOrNone(inOrder),
	`(body.order ?? []).id ?? "none"`: idOrNone(inOrder), `body.order.order.id`: func(s *seen) []*string { return inOrder(s.order) },
	`map(body.lines, .id)`: inLines, `map(filter(body.lines, true), .id)`: inLines, `body.lines[:] | map(.id)`: inLines,
	`map(body.lines, .order.id)`: func(s *seen) (ids []*string) {
		for _, l := range s.lines {
			if l == nil {
				return nil
			}
			ids = append(ids, inOrder(l)...)
		}
		return ids
	},
	`body.ids[:]`: func(s *seen) (ids []*string) {
		for _, id := range s.ids {
			ids = append(ids, id.id)
		}
		return ids
	},
	`keys(body.byName)`: func(s *seen) (ids []*string) {
		for name := range s.byName {
			ids = append(ids, &name)
		}
		return ids
	},
}

func own(s *seen) []*string {
	if s == nil {
		return []*string{nil}
	}
	return []*string{s.id}
}

func inOrder(s *seen) []*string {
	if s == nil {
		return []*string{nil}
	}
	return own(s.order)
}

func inLines(s *seen) (ids []*string) {
	for _, l := range s.lines {
		ids = append(ids, own(l)...)
	}
	return ids
}

// idOrNone returns the id, or none if the handler has none.
func idOrNone(view func(*seen) []*string) func(*seen) []*string {
	return func(s *seen) []*string {
		ids := view(s)
		for i, id := range ids {
			if id == nil {
				none := "none"
				ids[i] = &none
			}
		}
		return ids
	}
}

// wanted returns the keys of ids. It returns false if the handler has lost the text of an id or if an id is
// missing.
func wanted(ids []*string) (keys []string, known bool) {
	for _, id := range ids {
		if id == nil || id == &lossy || *id == "" {
			return nil, false
		}
		keys = append(keys, "o:"+encodedText(*id))
	}
	slices.Sort(keys)
	return slices.Compact(keys), len(keys) > 0
}

// encodedText returns the text of a value in a key. It follows the documentation, not the code.
func encodedText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(":%{}", r) || !strconv.IsPrint(r) {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// keysOf returns the keys of a request with the body, or the *EvalError that refuses it.
func keysOf(t *testing.T, v *httpvars.Variables, template *keyexpr.Template, body string) ([]string, error) {
	t.Helper()
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{RawQuery: "field=id"}, Header: http.Header{"Content-Type": {"application/json"}}}
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if body != "" {
		r.Body = readCloser{strings.NewReader(body)}
	}
	keys, err := template.Keys(v.Request(r, &host{}))
	if _, ok := errors.AsType[*keyexpr.EvalError](err); err != nil && !ok {
		t.Fatalf("%v is no *EvalError", err)
	}
	return keys, err
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func compiledViews(tb testing.TB, v *httpvars.Variables) map[string]*keyexpr.Template {
	tb.Helper()
	templates := map[string]*keyexpr.Template{}
	for part := range views {
		templates[part] = compile(tb, v, `o:#{`+part+`}`)
	}
	return templates
}

// compareHandlers checks that every handler reads the id in the key, unless the request is refused. It
// returns the number of compared keys.
func compareHandlers(t *testing.T, v *httpvars.Variables, templates map[string]*keyexpr.Template, body string) (compared int) {
	t.Helper()
	for part, view := range views {
		keys, err := keysOf(t, v, templates[part], body)
		if err != nil {
			continue
		}
		for name, handler := range handlers {
			sees, refused := handler(body)
			if refused != nil {
				continue
			}
			ids := view(sees)
			if slices.Contains(ids, &lossy) {
				continue // the handler has lost the text that is in the key
			}
			want, known := wanted(ids)
			if !known || !slices.Equal(keys, want) {
				t.Errorf("%s of %q: got the keys %q; a handler with %s needs %q", part, body, keys, name, want)
			}
			compared++
		}
	}
	return compared
}

// FuzzBody_Handlers compares the keys of any document with the ids that handlers read.
func FuzzBody_Handlers(f *testing.F) {
	for _, body := range []string{
		`{"id": 42}`, `{"ID": "42"}`, `{"Id": 5.0}`, `{"\u0049d": -0}`, `{"id": 1, "ID": 2}`, `{"order": {"iD": 1e2}}`, `{"\u212aey": 1}`, `{"\u017fku": 1}`,
		`{"lines": [{"id": 1}, {"ID": "1"}], "byName": {"a": {"Id": 1}, "A": {"id": 2}}}`, `{"ids": [1, "1", 2]} {}`, "{\"id\": \"\xff\"}", `{"id": "\ud800"}`, `null`, `[{"id": 1}]`,
	} {
		f.Add(body)
	}
	v := variables(f, httpvars.Config{})
	templates := compiledViews(f, v)
	f.Fuzz(func(t *testing.T, body string) { compareHandlers(t, v, templates, body) })
}

// TestBody_Handlers makes the same comparison for random documents that different handlers may read
// differently.
func TestBody_Handlers(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	templates := compiledViews(t, v)
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 1500 {
		compared += compareHandlers(t, v, templates, document(r))
		if t.Failed() {
			return
		}
	}
	if compared < 4000 { // otherwise too many documents are refused for the test to mean anything
		t.Errorf("only %d keys could be compared", compared)
	}
	t.Logf("%d keys match the ids of handlers", compared)
}

// FuzzBody_TwoRequests checks for every handler that two requests have the same key if and only if they have
// the same id.
func FuzzBody_TwoRequests(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(3), uint64(3))
	v := variables(f, httpvars.Config{})
	templates := compiledViews(f, v)
	f.Fuzz(func(t *testing.T, a, b uint64) {
		checkTwo(t, v, templates, document(rand.New(rand.NewPCG(a, 0))), document(rand.New(rand.NewPCG(b, 0))))
	})
}

func checkTwo(t *testing.T, v *httpvars.Variables, templates map[string]*keyexpr.Template, bodies ...string) (compared int) {
	t.Helper()
	for part, view := range views {
		first, err1 := keysOf(t, v, templates[part], bodies[0])
		second, err2 := keysOf(t, v, templates[part], bodies[1])
		if err1 != nil || err2 != nil {
			continue
		}
		for name, handler := range handlers {
			sees1, refused1 := handler(bodies[0])
			sees2, refused2 := handler(bodies[1])
			if refused1 != nil || refused2 != nil {
				continue
			}
			ids1, known1 := wanted(view(sees1))
			ids2, known2 := wanted(view(sees2))
			if known1 && known2 && slices.Equal(ids1, ids2) != slices.Equal(first, second) {
				t.Errorf("%s of %q and %q: the keys are %q and %q, for a handler with %s the ids are %q and %q", part, bodies[0], bodies[1], first, second, name, ids1, ids2)
			}
			compared++
		}
	}
	return compared
}

// TestBody_TwoRequests checks many random pairs.
func TestBody_TwoRequests(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	templates := compiledViews(t, v)
	r := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for range 400 {
		if compared += checkTwo(t, v, templates, document(r), document(r)); t.Failed() {
			return
		}
	}
	if compared < 400 {
		t.Errorf("only %d pairs could be compared", compared)
	}
	t.Logf("%d pairs were compared", compared)
}

// TestBody_LossyHandlers covers handlers that read the same id from two texts. If the type of the body is
// declared as the type of the handler, these texts have the same key.
func TestBody_LossyHandlers(t *testing.T) {
	t.Parallel()
	type float struct {
		ID float64 `json:"id"`
	}
	type quoted struct {
		ID int64 `json:"id,string"`
	}
	type exact struct {
		ID int64 `json:"id"`
	}
	one := func(body string, into any) any {
		if err := json.Unmarshal([]byte(body), into); err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(into).Elem().Field(0).Interface()
	}
	key := func(typ reflect.Type, body string) string {
		v := variables(t, httpvars.Config{Body: typ})
		keys, err := keysOf(t, v, compile(t, v, `#{body.id}`), body)
		if err != nil {
			t.Fatal(err)
		}
		return keys[0]
	}
	large, larger := `{"id": 9007199254740992}`, `{"id": 9007199254740993}`
	if one(large, &float{}) != one(larger, &float{}) || key(nil, large) == key(nil, larger) {
		t.Error("a float64 does not lose the text")
	}
	if one(large, &exact{}) == one(larger, &exact{}) || key(reflect.TypeFor[exact](), large) == key(reflect.TypeFor[exact](), larger) {
		t.Error("an int64 loses something")
	}
	zero, plain := `{"id": "042"}`, `{"id": "42"}`
	if one(zero, &quoted{}) != one(plain, &quoted{}) || key(nil, zero) == key(nil, plain) {
		t.Error("a field with ,string does not lose the text")
	}
	if typ := reflect.TypeFor[quoted](); key(typ, zero) != "42" || key(typ, plain) != "42" {
		t.Error("a typed body yields another id than the handler reads")
	}
	v := variables(t, httpvars.Config{Body: reflect.TypeFor[float]()})
	if _, err := keyexpr.Compile(`#{body.id}`, v.Schema()); err == nil {
		t.Error("a float64 is a part of a key")
	}
}

// FuzzBody_Spelling evaluates any expression over a document and over the same document with respelled
// names. A handler sees no difference, so the results are equal or one document is refused.
func FuzzBody_Spelling(f *testing.F) {
	for form := range forms {
		f.Add(form, respelled(asSent), uint64(1))
	}
	for _, form := range compared {
		f.Add(form, respelled(asSent), uint64(1))
	}
	for part := range views {
		f.Add(part, document(rand.New(rand.NewPCG(5, 6))), uint64(2))
	}
	v := variables(f, httpvars.Config{})
	f.Fuzz(func(t *testing.T, part, body string, seed uint64) {
		other, ok := respelledDocument(rand.New(rand.NewPCG(seed, 0)), body)
		if !ok {
			return
		}
		if template, err := keyexpr.Compile(`o:#{`+part+`}`, v.Schema()); err == nil {
			first, err1 := keysOf(t, v, template, body)
			second, err2 := keysOf(t, v, template, other)
			if err1 == nil && err2 == nil && !slices.Equal(first, second) {
				t.Fatalf("%s of %q is %q, but of %q it is %q", part, body, first, other, second)
			}
		}
		condition, err := keyexpr.CompileCondition(part, v.Schema())
		if err != nil {
			return
		}
		first, err1 := condition.Eval(v.Request(post(t, "application/json", body), &host{}))
		second, err2 := condition.Eval(v.Request(post(t, "application/json", other), &host{}))
		if err1 == nil && err2 == nil && first != second {
			t.Fatalf("%s of %q is %t, but of %q it is %t", part, body, first, other, second)
		}
	})
}
