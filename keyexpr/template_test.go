package keyexpr_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestTemplate_Key(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, template string
		request        request
		want           string
	}{
		{"plain reference", `order_lock_#{path.orderId}`, path("42"), "order_lock_42"},
		{"bracket reference", `order:#{path["orderId"]}`, path("42"), "order:42"},
		{"only a part", `#{path.orderId}`, path("42"), "42"},
		{"two parts", `#{path.shop}:#{path.orderId}`, request{path: entries{"shop": {"s"}, "orderId": {"1"}}}, "s:1"},
		{"constant", `nightly-report`, request{}, "nightly-report"},
		{"literal opening", `a#{"#{"}b`, request{}, "a#{b"},
		{"constant between parts", `#{path.shop}#{"/"}#{path.orderId}`, request{path: entries{"shop": {"s"}, "orderId": {"1"}}}, "s/1"},
		{"hash tag in literals", `{order}:#{path.orderId}`, path("42"), "{order}:42"},
		{"hash tag around a part", `{#{path.orderId}}:x`, path("42"), "{42}:x"},
		{"hash tag opened by a part", `#{"{"}x}:#{path.orderId}`, path("42"), "{x}:42"},
		{"hash tag opened by a prefix of a sum", `#{"{a:" + path.orderId}}`, path("42"), "{a:42}"},
		{"closing brace in literals", `a}b:#{path.orderId}-}`, path("42"), "a}b:42-}"},
		{"literal closing brace", `a#{"}"}:#{path.orderId}`, path("42"), "a}:42"},
		{"brace in a string", `x:#{path.orderId + "}"}`, path("1"), "x:1%7D"},
		{"apostrophe in literals", `it's:#{path.orderId}`, path("1"), "it's:1"},
		{"header in any case", `h:#{header["x-request-id"]}`, request{header: entries{"X-Request-Id": {"a"}}}, "h:a"},
		{"first of repeated", `q:#{query.id[0]}`, request{query: entries{"id": {"a", "b"}}}, "q:a"},
		{"second of repeated", `q:#{query.id[1]}`, request{query: entries{"id": {"a", "b"}}}, "q:b"},
		{"bool", `o:#{body.x}`, body(`{"x": false}`), "o:false"},
		{"untyped text", `o:#{body.id}`, body(`{"id": "a-1"}`), "o:a-1"},
		{"nested", `o:#{body.a.b[1].c}`, body(`{"a": {"b": [{}, {"c": "x"}]}}`), "o:x"},
		{"optional chain", `o:#{body.a?.b}`, body(`{"a": {"b": "x"}}`), "o:x"},
		{"default used", `o:#{query.id ?? "none"}`, request{}, "o:none"},
		{"concatenation is text", `o:#{body.a + "1"}`, body(`{"a": "1"}`), "o:11"},
		{"condition", `o:#{method == "POST" ? path.orderId : "none"}`, path("1"), "o:1"},
		{"element of split", `o:#{split(path.orderId, "-")[1]}`, path("a-b"), "o:b"},
		{"last of split", `o:#{split(path.orderId, "-")[-1]}`, path("a-b"), "o:b"},
		{"substring", `o:#{path.orderId[0:2]}`, path("abcdef"), "o:ab"},
		{"registered", `u:#{principal}`, request{principal: "bob"}, "u:bob"},
		{"non-ASCII text", `o:#{path.orderId}`, path("größe"), "o:größe"},
		{"several lines", "o:#{path.orderId +\n  \"x\"}", path("1"), "o:1x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compile(t, tt.template).Key(tt.request.env(t))
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// Templates and conditions are safe for concurrent use.
func TestTemplate_Concurrent(t *testing.T) {
	t.Parallel()
	template := compile(t, `o:#{lower(path.orderId)}:#{query.q ?? "x"}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			id := strconv.Itoa(worker)
			for range 100 {
				if got, err := template.Key(path(id).env(t)); err != nil || got != "o:"+id+":x" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestTemplate_Keys(t *testing.T) {
	t.Parallel()
	items := body(`{"shop": "s", "items": [{"sku": "b", "n": 1}, {"sku": "a", "n": 2}, {"sku": "b", "n": 3}]}`)
	tests := []struct {
		name, template string
		request        request
		want           []string
	}{
		{"map", `inventory:deduct:#{map(body.items, .sku)}`, items, []string{"inventory:deduct:a", "inventory:deduct:b"}},
		{"with other parts", `#{body.shop}:#{map(body.items, .sku)}:x`, items, []string{"s:a:x", "s:b:x"}},
		{"filter", `i:#{map(filter(body.items, .n > 1), .sku)}`, items, []string{"i:a", "i:b"}},
		{"all of a repeated value", `i:#{query.id[:]}`, request{query: entries{"id": {"2", "1", "2"}}}, []string{"i:1", "i:2"}},
		{"untyped list", `i:#{body.ids[:]}`, body(`{"ids": [2, 1]}`), []string{"i:1", "i:2"}},
		{"no list", `i:#{path.orderId}`, path("1"), []string{"i:1"}},
		{"tuples of untyped elements", `i:#{body.ids[:]}`, body(`{"ids": [1, "1"]}`), []string{"i:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := compile(t, tt.template).Keys(tt.request.env(t))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// refusingEnv is an Env that fails the test if an expression reads one variable.
type refusingEnv struct {
	keyexpr.Values

	t    *testing.T
	slot int
}

func (r refusingEnv) Value(slot int) (any, error) {
	if slot == r.slot {
		r.t.Error("the template reads the variable")
	}
	return r.Values.Value(slot)
}

func TestTemplate_CheckWithout(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.NewSchema(
		keyexpr.Variable{Name: "late", Type: keyexpr.AnyType()},
		keyexpr.Variable{Name: "early", Type: keyexpr.AnyType()},
	)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		template string
		early    any
		want     keyexpr.Reason // 0: no error
	}{
		"all is there":             {"a:#{late.id}:#{early.id}", map[string]any{"id": "1"}, 0},
		"missing after late":       {"a:#{late.id}:#{early.id}", nil, keyexpr.ReasonMissing},
		"missing before late":      {"a:#{early.id}:#{late.id}", nil, keyexpr.ReasonMissing},
		"in one expression":        {"a:#{late.id + early.id}", nil, 0},
		"only the late variable":   {"a:#{late.id}", nil, 0},
		"a list that is late":      {"a:#{map(late.ids, .id)}:#{early.id}", nil, keyexpr.ReasonMissing},
		"a list that is early":     {"a:#{late.id}:#{map(early.ids, .id)}", map[string]any{"ids": []any{}}, keyexpr.ReasonEmpty},
		"an early list that fits":  {"a:#{late.id}:#{map(early.ids, .id)}", map[string]any{"ids": []any{map[string]any{"id": "1"}}}, 0},
		"no variable at all":       {"a", nil, 0},
		"of the wrong type":        {"a:#{late.id}:#{early.id}", map[string]any{"id": []any{}}, keyexpr.ReasonWrongType},
		"an empty text":            {"a:#{late.id}:#{early.id}", map[string]any{"id": ""}, keyexpr.ReasonEmpty},
		"an expression over early": {"a:#{late.id}:#{lower(early.id)}", map[string]any{"id": ""}, keyexpr.ReasonEmpty},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := keyexpr.Compile(tt.template, schema)
			if err != nil {
				t.Fatal(err)
			}
			err = template.CheckWithout(refusingEnv{keyexpr.Values{nil, tt.early}, t, 0}, "late", "other")
			if tt.want == 0 {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			failure, ok := err.(*keyexpr.EvalError) //nolint:errorlint // documented to be one
			if !ok || failure.Reason != tt.want || failure.Template != tt.template {
				t.Errorf("got %v, want reason %v of the template", err, tt.want)
			}
		})
	}
}

func TestTemplate_CheckWithoutSeveral(t *testing.T) {
	t.Parallel()
	template := compile(t, `o:#{path.orderId}:#{body.ids[:]}:#{lower(query.id)}`)
	whole := request{path: entries{"orderId": {"7"}}, query: entries{"id": {"A"}}, body: `{"ids": [1, 2]}`}
	if err := errors.Join(template.CheckWithout(whole.env(t)), template.CheckWithout(request{}.env(t), "body", "path", "query")); err != nil {
		t.Error(err)
	}
	if err := template.CheckWithout(request{path: whole.path, query: whole.query}.env(t), "path", "query"); reasonOf(t, err) != keyexpr.ReasonMissing {
		t.Errorf("got %v, want that body.ids is missing", err)
	}
}

// recordingEnv records the variables that a template reads.
type recordingEnv struct {
	keyexpr.Values

	slots map[int]bool
}

func (a recordingEnv) Value(slot int) (any, error) {
	a.slots[slot] = true
	return a.Values.Value(slot)
}

func (a recordingEnv) Items(slot int, key string) ([]string, error) {
	a.slots[slot] = true
	return a.Values.Items(slot, key)
}

// A template reads only the variables that Uses and Variables report. An adapter relies on that: it reads the
// body of a request only if they report the body.
func TestTemplate_ReadsOnlyUsedVariables(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for _, expression := range lawExpressions {
		template, err := keyexpr.Compile(`o:#{`+expression+`}`, schema)
		if err != nil {
			continue // the schema does not have the path parameter
		}
		env := recordingEnv{lawEnv(t), map[int]bool{}}
		_, _ = template.Keys(env)
		for slot := range env.slots {
			if name := schema.Variables()[slot]; !template.Uses(name) || !slices.Contains(template.Variables(), name) {
				t.Errorf("%s reads %s, and reports %q", expression, name, template.Variables())
			}
		}
		for _, name := range template.Variables() {
			if !slices.Contains(schema.Variables(), name) || !strings.Contains(expression, name) {
				t.Errorf("%s reports %s", expression, name)
			}
		}
		if len(template.Variables()) == 0 != (len(env.slots) == 0) {
			t.Errorf("%s uses %q, and reads %d variables", expression, template.Variables(), len(env.slots))
		}
	}
}

// Variables that a template does not use do not change its keys.
func TestTemplate_IgnoresUnusedVariables(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for _, expression := range lawExpressions {
		template, err := keyexpr.Compile(`o:#{`+expression+`}`, schema)
		if err != nil {
			continue
		}
		want, err := template.Keys(lawEnv(t))
		bare := lawEnv(t)
		for slot, name := range schema.Variables() {
			if !template.Uses(name) {
				bare[slot] = nil
			}
		}
		got, errBare := template.Keys(bare)
		if !slices.Equal(got, want) || (err == nil) != (errBare == nil) {
			t.Errorf("%s: got %q, %v, with all variables %q, %v", expression, got, errBare, want, err)
		}
	}
}

// The keys of a list are the keys of its elements, sorted and without duplicates.
func TestTemplate_KeysOfElements(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	values := []any{"a", "b", "a:b", "1", 1, "01", true, "true", "é", "e\u0301", "x-y", "%", "{", strings.Repeat("long", 200), -1, uint64(1 << 63)}
	list, one := compile(t, `o:#{body.xs[:]}-#{path.shop}`), compile(t, `o:#{body.x}-#{path.shop}`)
	for range 200 {
		xs := make([]any, 1+random.IntN(12))
		var want []string
		for i := range xs {
			xs[i] = values[random.IntN(len(values))]
			key, err := one.Key(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"x": xs[i]}})
			if err != nil {
				t.Fatalf("%v: %v", xs[i], err)
			}
			want = append(want, key)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got, err := list.Keys(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"xs": xs}})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %q, %v, want %q", xs, got, err, want)
		}
		key, err := list.Key(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"xs": xs}})
		if one := len(want) == 1; one != (err == nil) || one && key != want[0] {
			t.Errorf("%v: one key is %q, %v, want %q", xs, key, err, want)
		}
	}
}

// The error of any part contains the template, whether the part is before a list, after it, or the list
// itself.
func TestTemplate_FailingPart(t *testing.T) {
	t.Parallel()
	const template = `o:#{path.shop}:#{body.ids[:]}:#{query.id}`
	whole := func() request {
		return request{path: entries{"shop": {"s"}}, query: entries{"id": {"1"}}, body: `{"ids": ["b", "a"]}`}
	}
	for subject, change := range map[string]func(*request){
		"":            func(*request) {},
		"path.shop":   func(r *request) { r.path = nil },
		"query.id":    func(r *request) { r.query = nil },
		"body.ids":    func(r *request) { r.body = `{"ids": 7}` },
		"body.ids[:]": func(r *request) { r.body = `{"ids": []}` },
	} {
		r := whole()
		change(&r)
		keys, err := compile(t, template).Keys(r.env(t))
		if subject == "" {
			if err != nil || strings.Join(keys, " ") != "o:s:a:1 o:s:b:1" {
				t.Errorf("got %q, %v", keys, err)
			}
			continue
		}
		failure, ok := errors.AsType[*keyexpr.EvalError](err)
		if !ok || failure.Subject != subject || failure.Template != template {
			t.Errorf("without %s: got %q, %v", subject, keys, err)
		}
		if key, err := compile(t, template).Key(r.env(t)); key != "" || err == nil {
			t.Errorf("without %s: got key %q, %v", subject, key, err)
		}
	}
}

// Uses and Variables report the variables of a template and of a condition.
func TestTemplate_Uses(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`order`:                                     "",
		`#{"constant"}`:                             "",
		`#{path.orderId}`:                           "path",
		`#{path.orderId}:#{path.shop}`:              "path",
		`#{path.orderId}:#{query.id}`:               "path query",
		`#{header["X-Id"] ?? query.id}`:             "header query",
		`#{lower(body.id)}:#{method}`:               "body method",
		`#{map(body.items, .sku + method)}`:         "body method",
		`#{"a:" + path.orderId + ":" + principal}`:  "path principal",
		`#{method == "POST" ? path.orderId : body}`: "body method path",
		`#{[path.orderId, query.id]}`:               "path query",
	} {
		template := compile(t, source)
		if got := strings.Join(template.Variables(), " "); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
		for _, name := range requestSchema(t).Variables() {
			if got := template.Uses(name); got != slices.Contains(strings.Fields(want), name) {
				t.Errorf("%s: Uses(%s) is %v", source, name, got)
			}
		}
		if template.String() != source {
			t.Errorf("%s: its source is %s", source, template)
		}
		if _, constant := template.Constant(); constant != (want == "") {
			t.Errorf("%s: constant: %v", source, constant)
		}
		if expression, ok := strings.CutPrefix(source, "#{"); ok && strings.Count(source, "#{") == 1 {
			checkConditionUses(t, "("+strings.TrimSuffix(expression, "}")+") != nil", want)
		}
	}
}

// Callers may change the result of Variables.
func TestTemplate_VariablesReturnsCopy(t *testing.T) {
	t.Parallel()
	template := compile(t, `#{path.orderId}`)
	template.Variables()[0] = "x"
	if !template.Uses("path") || template.Variables()[0] != "path" {
		t.Errorf("got %q", template.Variables())
	}
	c := conditionFor(t, `method == ""`, requestSchema(t))
	c.Variables()[0] = "x"
	if !c.Uses("method") {
		t.Errorf("got %q", c.Variables())
	}
}

func TestTemplate_IsList(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		`order`: false, `#{path.orderId}`: false, `#{body.ids}`: false, `#{body.ids[0]}`: false, `#{first(body.ids)}`: false,
		`#{len(body.ids)}`: false, `#{query.id}`: false, `#{query.id[0]}`: false,
		`#{body.ids[:]}`: true, `#{map(body.items, .sku)}`: true, `#{filter(body.ids, # > 1)}`: true, `#{split(body.ids, ",")}`: true, `#{query.id[:]}`: true,
		`#{[path.orderId]}`: true, `#{keys(body)}`: true,
		`#{method == "GET" ? body.a[:] : body.b[:]}`: true, `#{body.ids | map(# + 1)}`: true,
	} {
		if got := compile(t, source).IsList(); got != want {
			t.Errorf("%s: got %v, want %v", source, got, want)
		}
	}
}

// Key returns the key of a list with one element.
func TestTemplate_KeyOfList(t *testing.T) {
	t.Parallel()
	template := compile(t, `i:#{body.ids[:]}`)
	for sent, want := range map[string]string{`["a"]`: "i:a", `["a", "a"]`: "i:a", `[1, "1"]`: "i:1"} {
		if key, err := template.Key(body(`{"ids": ` + sent + `}`).env(t)); err != nil || key != want {
			t.Errorf("%s: got %q, %v, want %s", sent, key, err, want)
		}
	}
	_, err := template.Key(body(`{"ids": ["a", "b"]}`).env(t))
	if reasonOf(t, err) != keyexpr.ReasonTooMany || !strings.Contains(err.Error(), "yields 2 keys where one is needed") {
		t.Errorf("got %v", err)
	}
	if _, err := template.Key(body(`{"ids": []}`).env(t)); reasonOf(t, err) != keyexpr.ReasonEmpty {
		t.Errorf("got %v", err)
	}
}

func TestTemplate_Elements(t *testing.T) {
	t.Parallel()
	template := compile(t, `i:#{body.ids[:]}`)
	for n, want := range map[int]keyexpr.Reason{keyexpr.DefaultMaxElements: 0, keyexpr.DefaultMaxElements + 1: keyexpr.ReasonTooMany, 1001: keyexpr.ReasonTooMany} {
		ids := make([]any, n)
		for i := range ids {
			ids[i] = i
		}
		keys, err := template.Keys(keyexpr.Values{slotBody: object{"ids": ids}})
		if want == 0 && (err != nil || len(keys) != n) || want != 0 && (err == nil || reasonOf(t, err) != want) {
			t.Errorf("%d: got %d keys, %v", n, len(keys), err)
		}
	}
}

// A template does not read variables that it does not use.
func TestTemplate_ReadsBodyOnlyIfUsed(t *testing.T) {
	t.Parallel()
	env := recordingEnv{request{path: entries{"orderId": {"1"}}, body: `{"id": 1}`}.env(t), map[int]bool{}}
	for _, template := range []string{`o:#{path.orderId}`, `o:#{method == "GET" ? body.id : path.orderId}`} {
		if _, err := compile(t, template).Key(env); err != nil {
			t.Fatal(err)
		}
	}
	if slots := slices.Sorted(maps.Keys(env.slots)); !slices.Equal(slots, []int{slotPath, slotMethod}) {
		t.Errorf("reads the slots %v", slots)
	}
}

// A panic of the application is not an error of the request, so no method recovers it.
func TestTemplate_PanicOfEnv(t *testing.T) {
	t.Parallel()
	s := requestSchema(t)
	condition := conditionFor(t, `principal == "x"`, s)
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
