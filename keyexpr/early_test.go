package keyexpr_test

import (
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// refusing is an Env in which one variable must not be asked for.
type refusing struct {
	keyexpr.Values

	t    *testing.T
	slot int
}

func (r refusing) Value(slot int) (any, error) {
	if slot == r.slot {
		r.t.Error("the variable was asked for")
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
		want     keyexpr.Reason // 0: nothing is wrong so far
	}{
		"all is there":             {"a:#{late.id}:#{early.id}", map[string]any{"id": "1"}, 0},
		"missing behind":           {"a:#{late.id}:#{early.id}", nil, keyexpr.ReasonMissing},
		"missing before":           {"a:#{early.id}:#{late.id}", nil, keyexpr.ReasonMissing},
		"in one expression":        {"a:#{late.id + early.id}", nil, 0},
		"nothing but late":         {"a:#{late.id}", nil, 0},
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
			err = template.CheckWithout(refusing{keyexpr.Values{nil, tt.early}, t, 0}, "late", "other")
			if tt.want == 0 {
				if err != nil {
					t.Errorf("got %v, want nothing", err)
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
