package keyexpr_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/interlock-go/interlock/keyexpr"
)

type transfer struct {
	Amount float64
	Note   []byte
	Paid   bool
	IBAN   string
	secret string
}

// Messages about the argument of a function name what to write instead.
func TestSuggestion_WhatToWrite(t *testing.T) {
	t.Parallel()
	argument, err := keyexpr.Argument(reflect.TypeFor[transfer]())
	if err != nil {
		t.Fatal(err)
	}
	instant, err := keyexpr.Argument(reflect.TypeFor[time.Time]())
	if err != nil {
		t.Fatal(err)
	}
	path := schemaOf(t, keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: []string{"orderId"}}})
	method := keyexpr.Variable{Name: "method", Type: keyexpr.TypeFor[string]()}
	textOnly := schemaOf(t, method)
	registered := schemaOf(t, method, keyexpr.Variable{Name: "user", Registered: true})
	request := schemaOf(t, method, keyexpr.Variable{Name: "body", Type: keyexpr.JSONType(nil)})
	for _, tt := range []struct {
		template            string
		schema              *keyexpr.Schema
		message, suggestion string
	}{
		{`o:%s`, request, `"%s" does not begin a part here: "%s" would be literal text`, `o:#{body.id}`},
		{`o:%s`, textOnly, `"%s" does not begin a part here: "%s" would be literal text`, `o:#{…}`},
		{`o:%s`, registered, `"%s" does not begin a part here: "%s" would be literal text`, `o:#{user}`},
		{`o:%s`, argument, `"%s" does not begin a part here: "%s" would be literal text`, `o:#{in.IBAN}`},
		{`o:#{}`, argument, "the part is empty", `#{in.IBAN}`},
		{`o:#{in.Amount}`, argument, "in.Amount is a float; a key part is a string, a bool, an integer or an enum: compute its text in the program, as a field of in", ""},
		{`o:#{path.name}`, argument, "unknown name path: there is in, the argument of the function", "in.IBAN"},
		{`o:#{in.secret}`, argument, "the field secret of keyexpr_test.transfer is not exported: there are Amount, IBAN, Note, Paid", ""},
		{`o:#{in.Day}`, instant, "in is a time and has no field Day", "in"},
		{`o:#{path.id}`, path, "path parameter id does not exist: there is orderId", "path.orderId"},
		{`o:#{in.IBAN +}`, argument, "the expression ends too early: a value is missing after +", ""},
		{`o:#{in.}`, argument, "the expression ends too early: a name is missing after .", ""},
		{`o:#{lower(in.IBAN}`, argument, "the expression ends too early: ) is missing", ""},
		{`o:#{in.Paid ? "a"}`, argument, "the expression ends too early: : and a value are missing after ?", ""},
	} {
		got := problemOf(t, tt.template, tt.schema)
		if got.Message != tt.message || got.Suggestion != tt.suggestion {
			t.Errorf("%s: got %q, write %q; want %q, write %q", tt.template, got.Message, got.Suggestion, tt.message, tt.suggestion)
		}
	}
	_ = transfer{}.secret
}
