package keyexpr_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"shop:": "shop:order:1", "#{path.id}": "#{path.id}order:1", "{a}": "{a}order:1", "": "order:1"} {
		template, err := keyexpr.Compile("order:#{path.orderId}", requestSchema(t), keyexpr.Prefix(prefix))
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
	_, err := keyexpr.Compile("order:#{path.orderID}", requestSchema(t), keyexpr.Prefix("shop:"))
	problem, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || problem.Column != len("order:#{path.o") || problem.Template != "order:#{path.orderID}" {
		t.Errorf("got %+v", problem)
	}
}

func TestPrefix_IsCheckedAsText(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"a\n", "\xff"} {
		if _, err := keyexpr.Compile("order:#{path.orderId}", requestSchema(t), keyexpr.Prefix(prefix)); err == nil {
			t.Errorf("%q was taken", prefix)
		}
	}
}
