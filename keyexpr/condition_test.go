package keyexpr_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestCondition_Eval(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expression string
		request          request
		want             bool
	}{
		{"equal", `method == "POST"`, request{}, true},
		{"missing text is empty", `query.dry == ""`, request{}, true},
		{"missing field is empty text", `body.kind == ""`, body(`{}`), true},
		{"fraction", `body.amount > 9.5`, body(`{"amount": 9.6}`), true},
		{"large numbers are exact", `body.id == 9007199254740993`, body(`{"id": 9007199254740992}`), false},
		{"between", `0 <= body.id + 1 < 2`, body(`{}`), true},
		{"and", `body.flag and query.x != ""`, body(`{"flag": true}`), false},
		{"in list", `method in ["POST", "PUT"]`, request{}, true},
		{"any", `any(body.items, .n > 1)`, body(`{"items": [{"n": 1}, {}, {"n": 2}]}`), true},
		{"empty compared with nil", `body.x == nil`, body(`{"x": ""}`), false},
		{"query compared with nil", `query.x != nil`, request{query: entries{"x": {""}}}, true},
		{"null", `body.x == nil`, body(`{"x": null}`), true},
		{"sum", `body.a - body.b == 3`, body(`{"a": 3}`), true},
		{"all values", `"b" in query.x[:]`, request{query: entries{"x": {"a", "b"}}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := conditionFor(t, tt.expression, requestSchema(t))
			if got, err := c.Eval(tt.request.env(t)); err != nil || got != tt.want {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestCondition_EvalFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expression string
		request          request
		want             keyexpr.Reason
	}{
		{"no bool", `body.x`, body(`{"x": 1}`), keyexpr.ReasonWrongType},
		{"wrong type", `body.x > 1`, body(`{"x": "a"}`), keyexpr.ReasonExpression},
		{"repeated", `query.x == "a"`, request{query: entries{"x": {"a", "b"}}}, keyexpr.ReasonRepeated},
		{"unset", `principal == "bob"`, request{}, keyexpr.ReasonUnset},
		{"too large to compute", `body.x > 1`, body(`{"x": 18446744073709551615}`), keyexpr.ReasonExpression},
		{"no list", `any(body.x, # == 1)`, body(`{"x": {}}`), keyexpr.ReasonWrongType},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := conditionFor(t, tt.expression, requestSchema(t))
			got, err := c.Eval(tt.request.env(t))
			if err == nil {
				t.Fatalf("got %v, want reason %v", got, tt.want)
			}
			failure, ok := errors.AsType[*keyexpr.EvalError](err)
			if !ok || failure.Reason != tt.want || failure.Template != tt.expression {
				t.Errorf("got %v, want %v of the condition", err, tt.want)
			}
		})
	}
}

// If no value is missing, a condition has the result of the same expression in a key.
func TestCondition_AgreesWithKey(t *testing.T) {
	t.Parallel()
	bools := 0
	for _, expression := range lawExpressions {
		template, err := keyexpr.Compile(`#{`+expression+`}`, requestSchema(t))
		if err != nil || template.IsList() {
			continue
		}
		key, err := template.Key(lawEnv(t))
		if err != nil || key != "true" && key != "false" {
			continue
		}
		bools++
		condition, err := keyexpr.CompileCondition(expression, requestSchema(t))
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := condition.Eval(lawEnv(t)); err != nil || strconv.FormatBool(got) != key {
			t.Errorf("%s: a condition is %v, %v, a key %s", expression, got, err, key)
		}
		if !slices.Equal(condition.Variables(), template.Variables()) {
			t.Errorf("%s: a condition uses %q, a key %q", expression, condition.Variables(), template.Variables())
		}
	}
	if bools < 8 {
		t.Errorf("only %d expressions are bools", bools)
	}
}
