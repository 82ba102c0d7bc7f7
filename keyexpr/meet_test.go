package keyexpr_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// A client cannot spell the key of a rule with other colons: the colon that parts keys
// never comes from a value, wherever the value stands.
func TestTemplate_ValuesAddNoColon(t *testing.T) {
	t.Parallel()
	const sent = "42:refund:1"
	for template, want := range map[string]string{
		`order:#{path.orderId}`:                      "order:42%3Arefund%3A1",
		`order:#{path.orderId}:refund:#{method}`:     "order:42%3Arefund%3A1:refund:POST",
		`order:#{path.orderId}/x`:                    "order:42%3Arefund%3A1/x",
		`#{path.orderId}`:                            "42%3Arefund%3A1",
		`order:#{body.id}`:                           "order:42%3Arefund%3A1",
		`order:#{body.none ?? body.id}`:              "order:42%3Arefund%3A1",
		`order:#{lower(body.id)}`:                    "order:42%3Arefund%3A1",
		`order:#{body.ids[:]}`:                       "order:42%3Arefund%3A1",
		`order:#{map(body.ids, # + ":x")}`:           "order:42%3Arefund%3A1%3Ax",
		`order:#{method == "POST" ? "a:b" : "c"}`:    "order:a%3Ab",
		`order:#{path.orderId + "-" + path.orderId}`: "order:42%3Arefund%3A1-42%3Arefund%3A1",
	} {
		request := request{path: entries{"orderId": {sent}}, body: `{"id": "` + sent + `", "ids": ["` + sent + `"]}`}
		keys, err := compile(t, template).Keys(request.env(t))
		if err != nil || len(keys) != 1 || keys[0] != want {
			t.Errorf("%s: got %q, %v, want %s", template, keys, err, want)
		}
		keys, err = compile(t, template, keyexpr.Strict()).Keys(request.env(t))
		if err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter {
			t.Errorf("strict, %s: got %q, %v, want a character error", template, keys, err)
		}
	}
}

// Within a field a value may spell what another template has there, as the package comment
// says, and fields of their own tell templates apart.
func TestTemplate_ValuesSpellFields(t *testing.T) {
	t.Parallel()
	const one, other = `#{path.orderId}`, `#{path.orderId}-#{path.shop}`
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"seat:" + one, "seat:" + other, true},
		{"seat:" + one, "seat:7-12", true},
		{"seat:id:" + one, "seat:place:" + other, false},
		{"seat:" + one, `seat:#{path.orderId}:#{path.shop}`, false},
	} {
		a, errA := compile(t, tt.a).Key(path("7-12").env(t))
		b, errB := compile(t, tt.b).Key(request{path: entries{"orderId": {"7"}, "shop": {"12"}}}.env(t))
		if errA != nil || errB != nil || (a == b) != tt.same {
			t.Errorf("%s makes %q, %v, and %s %q, %v; the same: %v", tt.a, a, errA, tt.b, b, errB, tt.same)
		}
	}
}

// Texts that the template itself adds to a value are the template's, colons too:
// however the same key is spelled, it is the same lock.
func TestTemplate_SumsAreTemplates(t *testing.T) {
	t.Parallel()
	const id = "4:2"
	for template, want := range map[string]string{
		`#{"order:" + path.orderId}`:                            "order:4%3A2",
		`#{'order:' + path.orderId + ":x"}`:                     "order:4%3A2:x",
		"#{`order:` + path.orderId + ':' + path.shop}":          "order:4%3A2:s",
		`#{ "order:" + lower(path.orderId + "a") }`:             "order:4%3A2a",
		`#{path.shop + ":" + (path.orderId + "-") + path.shop}`: "s:4%3A2-s",
		`#{path.shop + ":" + path.shop + path.orderId}`:         "s:s4%3A2",
		`v:#{":" + path.orderId}`:                               "v::4%3A2",
		`#{path.orderId + ":"}`:                                 "4%3A2:",
		`#{"a:" + "b" + path.shop}`:                             "a:bs",
		`#{":" + ":"}#{path.shop}`:                              "::s",
		`#{"{a}:" + path.orderId}`:                              "{a}:4%3A2",
		`#{"order:" + (body.none ?? "no:ne")}`:                  "order:no%3Ane",
		`#{"order:" + ("x:" + path.orderId)}`:                   "order:x%3A4%3A2",
		`#{(("x:") + path.orderId)}`:                            "x%3A4%3A2",
		`#{path.shop == "s" ? "a:" + path.orderId : "b"}`:       "a%3A4%3A2",
		`#{"a:" + path.orderId | upper()}`:                      "A%3A4%3A2",
		`#{path.shop + "a:\n" + path.orderId}`:                  "sa%3A%0A4%3A2",
		`#{"order:" + body.n}`:                                  "order:7",
	} {
		env := request{path: entries{"orderId": {id}, "shop": {"s"}}, body: `{"n": 7}`}.env(t)
		if got, err := compile(t, template).Key(env); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", template, got, err, want)
		}
	}
}

// A sum cannot be told apart without text between its values, nor two sums without
// text between them. Positions are those of the template.
func TestTemplate_SumsAreCheckedAsTemplates(t *testing.T) {
	t.Parallel()
	for template, column := range map[string]int{
		`#{"ord:" + path.orderID}`:                   17,
		`#{path.orderId}#{path.shop + ":a"}`:         16,
		`#{"ü:" + path.shop + ":" + path.orderId.x}`: 0,
	} {
		_, err := keyexpr.Compile(template, requestSchema(t))
		if err == nil {
			t.Errorf("%s is accepted", template)
			continue
		}
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || column > 0 && problem.Column != column {
			t.Errorf("%s: got %v, want column %d", template, err, column)
		}
	}
}
