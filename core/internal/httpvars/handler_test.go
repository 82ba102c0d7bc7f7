package httpvars_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// keysOf are the keys of a request with the body, and an *EvalError where it is refused.
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

// checkHandlers wants that no handler sees another id than the key, unless the
// request is refused. It returns how many keys were compared.
func checkHandlers(t *testing.T, v *httpvars.Variables, templates map[string]*keyexpr.Template, body string) (compared int) {
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
				continue // the handler loses what the key has
			}
			want, known := wanted(ids)
			if !known || !slices.Equal(keys, want) {
				t.Errorf("%s of %q: the keys are %q, for a handler with %s %q", part, body, keys, name, want)
			}
			compared++
		}
	}
	return compared
}

// FuzzBody_HandlerSeesTheSame compares keys with what handlers see of any document.
func FuzzBody_HandlerSeesTheSame(f *testing.F) {
	for _, body := range []string{
		`{"id": 42}`, `{"ID": "42"}`, `{"Id": 5.0}`, `{"\u0049d": -0}`, `{"id": 1, "ID": 2}`, `{"order": {"iD": 1e2}}`, `{"\u212aey": 1}`, `{"\u017fku": 1}`,
		`{"lines": [{"id": 1}, {"ID": "1"}], "byName": {"a": {"Id": 1}, "A": {"id": 2}}}`, `{"ids": [1, "1", 2]} {}`, "{\"id\": \"\xff\"}", `{"id": "\ud800"}`, `null`, `[{"id": 1}]`,
	} {
		f.Add(body)
	}
	v := variables(f, httpvars.Config{})
	templates := compiledViews(f, v)
	f.Fuzz(func(t *testing.T, body string) { checkHandlers(t, v, templates, body) })
}

// TestBody_HandlersSeeTheSame does so for random documents that are meant to be read in
// two ways.
func TestBody_HandlersSeeTheSame(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	templates := compiledViews(t, v)
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 1500 {
		compared += checkHandlers(t, v, templates, document(r))
		if t.Failed() {
			return
		}
	}
	if compared < 4000 { // or else the documents are too hostile to tell anything
		t.Errorf("only %d keys could be compared", compared)
	}
	t.Logf("%d keys were what handlers see", compared)
}

// FuzzBody_TwoRequests wants one key for one id and two for two, whichever handler reads
// the requests.
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

// TestBody_TwoRequests does so for many pairs.
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

// TestBody_WhatHandlersLose is about handlers that take two texts for one id. The type of
// the handler as that of the body is the way out.
func TestBody_WhatHandlersLose(t *testing.T) {
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
		t.Error("a float64 does not lose what the key has")
	}
	if one(large, &exact{}) == one(larger, &exact{}) || key(reflect.TypeFor[exact](), large) == key(reflect.TypeFor[exact](), larger) {
		t.Error("an int64 loses something")
	}
	zero, plain := `{"id": "042"}`, `{"id": "42"}`
	if one(zero, &quoted{}) != one(plain, &quoted{}) || key(nil, zero) == key(nil, plain) {
		t.Error("a field with ,string does not lose what the key has")
	}
	if typ := reflect.TypeFor[quoted](); key(typ, zero) != "42" || key(typ, plain) != "42" {
		t.Error("a typed body is not read as the handler does")
	}
	v := variables(t, httpvars.Config{Body: reflect.TypeFor[float]()})
	if _, err := keyexpr.Compile(`#{body.id}`, v.Schema()); err == nil {
		t.Error("a float64 is a part of a key")
	}
}

// FuzzBody_Spelling evaluates any expression over a document and over the same document
// with its names in other spellings: a handler sees no difference, so that there is none,
// unless one is refused.
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
				t.Fatalf("%s of %q is %q, of %q %q", part, body, first, other, second)
			}
		}
		condition, err := keyexpr.CompileCondition(part, v.Schema())
		if err != nil {
			return
		}
		first, err1 := condition.Eval(v.Request(post(t, "application/json", body), &host{}))
		second, err2 := condition.Eval(v.Request(post(t, "application/json", other), &host{}))
		if err1 == nil && err2 == nil && first != second {
			t.Fatalf("%s of %q is %t, of %q %t", part, body, first, other, second)
		}
	})
}
