package keyexpr_test

import (
	"encoding/json"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// comparables contains values of each kind for ==.
func comparables() []any {
	return []any{
		nil, "", "a", "1", "1.0", "true", 0, 1, -1, 1.0, 1.5, true, false, uint64(1 << 63),
		[]any{},
		[]any{1},
		[]any{"1"},
		[]any{1, 2},
		[]string{"a"},
		[]int{1},
		object{},
		object{"a": 1},
		object{"a": "1"},
		object{"b": 1},
		object{"a": 1, "b": []any{1}},
	}
}

// For both orders of its operands, == has the same result or is refused. Each value equals itself.
func TestEqual_IsSymmetric(t *testing.T) {
	t.Parallel()
	c := (&hostileCase{expression: `body.a == body.b`}).condition(t)
	ask := func(a, b any) (bool, bool) {
		got, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": b}})
		return got, err == nil
	}
	for i, a := range comparables() {
		for j, b := range comparables() {
			forth, known := ask(a, b)
			back, knownBack := ask(b, a)
			if forth != back || known != knownBack {
				t.Errorf("%v == %v is %v, %v, and the other way round %v, %v", a, b, forth, known, back, knownBack)
			}
			_, large := a.(uint64)
			if _, isObject := a.(object); i == j && !large && !isObject && !(forth && known) {
				t.Errorf("%v == %v is %v, %v", a, a, forth, known)
			}
		}
	}
}

// != is the opposite of ==. Both refuse the same operands.
func TestEqual_NotEqualIsOpposite(t *testing.T) {
	t.Parallel()
	equal, unequal := (&hostileCase{expression: `body.a == body.b`}).condition(t), (&hostileCase{expression: `body.a != body.b`}).condition(t)
	for _, a := range comparables() {
		for _, b := range comparables() {
			env := keyexpr.Values{slotBody: object{"a": a, "b": b}}
			is, err := equal.Eval(env)
			isNot, errNot := unequal.Eval(env)
			if (err == nil) != (errNot == nil) || err == nil && is == isNot {
				t.Errorf("%v, %v: == is %v, %v, != is %v, %v", a, b, is, err, isNot, errNot)
			}
		}
	}
}

// in finds an element if and only if == does.
func TestEqual_AgreesWithIn(t *testing.T) {
	t.Parallel()
	equal, in := (&hostileCase{expression: `body.a == body.b`}).condition(t), (&hostileCase{expression: `body.a in body.list`}).condition(t)
	for _, a := range comparables() {
		for _, b := range comparables() {
			if _, large := b.(uint64); large { // cannot be an operand of ==
				continue
			}
			env := keyexpr.Values{slotBody: object{"a": a, "b": b, "list": []any{b}}}
			is, err := equal.Eval(env)
			found, errIn := in.Eval(env)
			if a == nil || b == nil { // in a condition, a missing operand of == is the empty value of the type of the other
				continue
			}
			if (err == nil) != (errIn == nil) || is != found {
				t.Errorf("%v, %v: == is %v, %v, in is %v, %v", a, b, is, err, found, errIn)
			}
		}
	}
}

// All elements of lists are compared, so the order of the elements does not decide whether a
// comparison is refused.
func TestEqual_ComparesWholeLists(t *testing.T) {
	t.Parallel()
	c := (&hostileCase{expression: `body.a == body.b`}).condition(t)
	for _, tt := range []struct {
		a, b    []any
		refused bool
	}{
		{[]any{1, 2}, []any{1, 2}, false},
		{[]any{1, 2}, []any{2, 1}, false},
		{[]any{1, "2"}, []any{1, 2}, true},
		{[]any{"x", "2"}, []any{"y", 2}, true},
		{[]any{"2", "x"}, []any{2, "y"}, true},
		{[]any{[]any{"2"}}, []any{[]any{2}}, true},
		{[]any{true}, []any{"true"}, true},
		{[]any{true}, []any{"yes"}, false},
	} {
		if _, err := c.Eval(keyexpr.Values{slotBody: object{"a": tt.a, "b": tt.b}}); (err != nil) != tt.refused {
			t.Errorf("%v == %v: got %v", tt.a, tt.b, err)
		}
	}
}

// A text that handlers may read as a number is not compared with that number.
func TestEqual_TextsThatReadLikeNumbers(t *testing.T) {
	t.Parallel()
	c := (&hostileCase{expression: `body.a == body.b`}).condition(t)
	for text, refused := range map[string]bool{
		"1": true, "1.0": true, "1e0": true, "+1": true, "01": true, "10e-1": true,
		"": false, "2": false, "one": false, "1 ": false, " 1": false, "0x1": false, "1_0": false, "1,0": false, "１": false, "--1": false,
	} {
		if _, err := c.Eval(keyexpr.Values{slotBody: object{"a": text, "b": 1}}); (err != nil) != refused {
			t.Errorf("%q == 1: got %v, want an error: %v", text, err, refused)
		}
	}
}

// The same number is equal in every Go type, including the types of JSON and protobuf.
func TestEqual_NumbersOfAllGoTypes(t *testing.T) {
	t.Parallel()
	c := (&hostileCase{expression: `body.a == body.b and body.a in [body.b] and not (body.a != body.b) and body.a <= body.b and body.a >= body.b`}).condition(t)
	same := []any{42, int8(42), int16(42), int32(42), int64(42), uint(42), uint8(42), uint16(42), uint32(42), uint64(42), uintptr(42), 42.0, float32(42), json.Number("42")}
	for _, a := range same {
		for _, b := range same {
			if ok, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": b}}); err != nil || !ok {
				t.Errorf("%T and %T: got %v, %v", a, b, ok, err)
			}
		}
	}
	for _, other := range []any{41, 43, -42, 42.5, json.Number("43")} {
		for _, a := range same {
			if ok, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": other}}); err != nil || ok {
				t.Errorf("%T and %v: got %v, %v", a, other, ok, err)
			}
		}
	}
}
