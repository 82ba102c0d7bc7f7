package keyexpr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"shop:": "shop:order:1", "#{path.id}": "#{path.id}order:1", "{a}": "{a}order:1", "": "order:1"} {
		template, err := keyexpr.Format{Prefix: prefix}.Compile("order:#{path.orderId}", requestSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Key(path("1").env(t)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", prefix, got, err, want)
		}
	}
}

func TestPrefix_IsNotCountedInPositions(t *testing.T) {
	t.Parallel()
	_, err := keyexpr.Format{Prefix: "shop:"}.Compile("order:#{path.orderID}", requestSchema(t))
	problem, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || problem.Column != len("order:#{path.o") || problem.Template != "order:#{path.orderID}" {
		t.Errorf("got %+v", problem)
	}
}

func TestPrefix_LeavesRoom(t *testing.T) {
	t.Parallel()
	template := compile(t, "#{path.orderId}", keyexpr.Format{Prefix: strings.Repeat("p", keyexpr.MaxPrefixLength)})
	key, err := template.Key(path("readable-order-" + strings.Repeat("1", keyexpr.DefaultMaxLength)).env(t))
	if err != nil || len(key) != keyexpr.DefaultMaxLength || !strings.Contains(key, "readable-") {
		t.Errorf("got %q, %v", key, err)
	}
}

// A template whose literal text is longer than a key would tell requests apart by the
// hash alone, and refuse all of them under Strict.
func TestCompile_LiteralsLeaveRoom(t *testing.T) {
	t.Parallel()
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		_, err := format.Compile(strings.Repeat("k", 511)+"#{path.orderId}", requestSchema(t))
		if err != nil {
			t.Errorf("room for one character: got %v", err)
		}
		_, err = format.Compile(strings.Repeat("k", 510)+"#{path.orderId}:#{path.shop}", requestSchema(t))
		if err == nil || !strings.Contains(err.Error(), "every key has at least 513 bytes; at most 512 are allowed") {
			t.Errorf("no room: got %v", err)
		}
	}
}

func TestPrefix_IsCheckedAsText(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"a\n", "\xff"} {
		if _, err := (keyexpr.Format{Prefix: prefix}).Compile("order:#{path.orderId}", requestSchema(t)); err == nil {
			t.Errorf("%q was taken", prefix)
		}
	}
}
