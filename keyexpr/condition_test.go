package keyexpr_test

import (
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
		{"missing text is not other text", `query.dry == "1"`, request{}, false},
		{"missing field is empty text", `body.kind == ""`, body(`{}`), true},
		{"missing number is zero", `body.amount > 100`, body(`{}`), false},
		{"missing number below", `body.amount < 100`, body(`{}`), true},
		{"fraction", `body.amount > 9.5`, body(`{"amount": 9.6}`), true},
		{"large numbers are exact", `body.id == 9007199254740993`, body(`{"id": 9007199254740992}`), false},
		{"between", `0 <= body.id + 1 < 2`, body(`{}`), true},
		{"missing bool is false", `body.flag`, request{}, false},
		{"not", `not body.flag`, request{}, true},
		{"and", `body.flag and query.x != ""`, body(`{"flag": true}`), false},
		{"or", `body.flag || method == "POST"`, request{}, true},
		{"in list", `method in ["POST", "PUT"]`, request{}, true},
		{"in missing list", `"x" in body.tags`, request{}, false},
		{"any of missing list", `any(body.items, .n > 1)`, request{}, false},
		{"any", `any(body.items, .n > 1)`, body(`{"items": [{"n": 1}, {}, {"n": 2}]}`), true},
		{"length of missing", `len(body.items) == 0`, request{}, true},
		{"missing compared with nil", `body.x == nil`, body(`{}`), true},
		{"empty compared with nil", `body.x == nil`, body(`{"x": ""}`), false},
		{"query compared with nil", `query.x != nil`, request{query: entries{"x": {""}}}, true},
		{"null", `body.x == nil`, body(`{"x": null}`), true},
		{"default", `(query.x ?? "1") == "1"`, request{}, true},
		{"ternary", `body.flag ? false : true`, request{}, true},
		{"deep", `body.a.b.c == ""`, request{}, true},
		{"index", `body.a[3].c == ""`, body(`{"a": []}`), true},
		{"sum", `body.a - body.b == 3`, body(`{"a": 3}`), true},
		{"all values", `"b" in query.x[:]`, request{query: entries{"x": {"a", "b"}}}, true},
		{"string of missing", `lower(body.x) == ""`, request{}, true},
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
			if reason := reasonOf(t, err); reason != tt.want {
				t.Errorf("got %v (%v), want %v", reason, err, tt.want)
			}
		})
	}
}

func TestCondition_Variables(t *testing.T) {
	t.Parallel()
	c := conditionFor(t, `body.x == "" and method == "POST"`, requestSchema(t))
	if !c.Uses("body") || !c.Uses("method") || c.Uses("query") {
		t.Errorf("got %q, want body and method", c.Variables())
	}
}
