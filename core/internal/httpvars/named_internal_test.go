package httpvars

import (
	"testing"
	"unicode"
)

// All characters that some binders read as one have one folded form.
func TestFoldName_AnyCase(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if other := unicode.SimpleFold(r); other != r && foldName(string(r)) != foldName(string(other)) {
			t.Errorf("%q and %q have the forms %q and %q", r, other, foldName(string(r)), foldName(string(other)))
		}
	}
}

func TestFoldName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"order": "order", "ORDER": "order", "orderId": "orderid", "order[]": "order", "or[]der": "order", "[order]": "order", "order[id]": "orderid",
		"order.id": "orderid", "order_id": "order_id", "order-id": "order-id", "order0": "order0", "\u212aey": "key", "": "",
	} {
		if got := foldName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
