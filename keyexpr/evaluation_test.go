package keyexpr_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// panickingBodyEnv is an Env that panics when an expression reads the body.
type panickingBodyEnv struct{ keyexpr.Values }

func (p panickingBodyEnv) Value(slot int) (any, error) {
	if slot == slotBody {
		panic("no body")
	}
	return p.Values.Value(slot)
}

// outcomeOf returns the key, the text of the error, or the text of the panic.
func outcomeOf(template *keyexpr.Template, env keyexpr.Env) (got string) {
	defer func() {
		if v := recover(); v != nil {
			got, _ = v.(string)
			got = "panic: " + got
		}
	}()
	keys, err := template.Keys(env)
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.Join(keys, " ")
}

// An evaluation does not affect the next one, however it ends: with a key, an error of the expression, an
// exceeded limit, or a panic of the application.
func TestEvaluation_LeavesNoState(t *testing.T) {
	t.Parallel()
	template := compile(t, `o:#{string(body.id) + "-" + string(len(map(body.xs, # + 1)) + int(path.orderId))}`)
	env := func(body string, order string) keyexpr.Values {
		return request{path: entries{"orderId": {order}}, body: body}.env(t)
	}
	type outcome struct {
		env  keyexpr.Env
		want string
	}
	long := keyexpr.Values{slotPath: entries{"orderId": {"1"}}, slotBody: object{"id": strings.Repeat("x", 3<<20), "xs": []any{1}}}
	outcomes := []outcome{
		{env(`{"id": "a", "xs": [1, 2]}`, "1"), "o:a-3"},
		{env(`{"id": 7, "xs": []}`, "2"), "o:7-2"},
		{env(`{"xs": [1]}`, "1"), "error: keyexpr: key " + template.String() + ": body.id is missing"},
		{env(`{"id": "a", "xs": ["b"]}`, "1"), "error: keyexpr: key " + template.String() + ": "},
		{env(`{"id": "a", "xs": [1]}`, "x"), "error: keyexpr: key " + template.String() + ": "},
		{env(`{"id": "a", "xs": 5}`, "1"), "error: keyexpr: key " + template.String() + ": body.xs is an integer, not a list"},
		{panickingBodyEnv{env(`{}`, "1")}, "panic: no body"},
		{long, "error: keyexpr: key " + template.String() + ": "},
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 200 {
				o := outcomes[(i*(worker+1)+worker)%len(outcomes)]
				if got := outcomeOf(template, o.env); !strings.HasPrefix(got, o.want) {
					t.Errorf("got %q, want %q", got, o.want)
				}
			}
		})
	}
	group.Wait()
}

// Each evaluation returns a new error, so that callers may change theirs.
func TestEvaluation_NewErrorEachTime(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`#{body.id}`, `#{lower(body.id)}`, `#{map(body.ids, .x)}`, `#{path.orderId + "x"}`} {
		template := compile(t, source)
		_, first := template.Keys(request{}.env(t))
		failure, ok := errors.AsType[*keyexpr.EvalError](first)
		if !ok {
			t.Fatalf("%s: got %v", source, first)
		}
		text := first.Error()
		failure.Template, failure.Detail, failure.Subject = "changed", "changed", "changed"
		if _, second := template.Keys(request{}.env(t)); second == nil || second.Error() != text {
			t.Errorf("%s: first %q, then %v", source, text, second)
		}
	}
}

// Callers may modify the returned keys of a list.
func TestEvaluation_KeysBelongToCaller(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`o:#{body.ids[:]}`, `o:#{["a", "b"]}`, `o:#{path.orderId}`} {
		template := compile(t, source)
		env := request{path: entries{"orderId": {"7"}}, body: `{"ids": ["a", "b"]}`}.env(t)
		first, err := template.Keys(env)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(first, " ")
		for i := range first {
			first[i] = "changed"
		}
		if second, err := template.Keys(env); err != nil || strings.Join(second, " ") != want {
			t.Errorf("%s: got %q, %v, want %q", source, second, err, want)
		}
	}
}

// A list of literals is made once for all requests, and no request can change it.
func TestEvaluation_LiteralListsAreNotChanged(t *testing.T) {
	t.Parallel()
	c := conditionFor(t, `filter(["c", "a", "b"], # < "c")[0] == "a" and map(["c", "a", "b"], # + "x")[0] == "cx" and ["c", "a", "b"][0] == "c" and len(["c", method]) == 2`, requestSchema(t))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				if ok, err := c.Eval(keyexpr.Values{slotMethod: "POST"}); err != nil || !ok {
					t.Errorf("got %v, %v", ok, err)
				}
			}
		})
	}
	group.Wait()
}
