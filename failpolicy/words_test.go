package failpolicy_test

import (
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestNearest_ExactSpelling(t *testing.T) {
	t.Parallel()
	names := []string{"order", "orders", "orderId", "order_id"}
	for _, name := range []string{"order", "orders"} {
		if got := failpolicy.Nearest(name, names); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
	if got := failpolicy.Nearest("orders_id", names); got != "orderId" {
		t.Errorf("got %q", got)
	}
}

// If no name is near, Nearest returns the longest name that the word contains.
func TestNearest_NameInWord(t *testing.T) {
	t.Parallel()
	names := []string{"fair", "read", "write", "fallback", "key", "read_only", "POST /orders"}
	for word, want := range map[string]string{
		"RFairLock": "fair", "redissonReadLock": "read", "RedissonReadOnlyLock": "read_only", "fallbackMethod": "fallback",
		"lockKey": "", "unfairness": "fair", "": "", "POST /orders/:id/refunds": "",
	} {
		if got := failpolicy.Nearest(word, names); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func FuzzNearest(f *testing.F) {
	f.Add("eror")
	f.Add("\xff\x00_-")
	f.Fuzz(func(t *testing.T, word string) {
		switch got := failpolicy.Nearest(word, []string{"error", "skip", "null_response"}); got {
		case "", "error", "skip", "null_response":
		default:
			t.Errorf("got %q", got)
		}
	})
}

func TestSameName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orderId", "order_id", "OrderID", "order-id", "ORDER_ID", " order id "} {
		if !failpolicy.SameName("orderId", name) || !failpolicy.SameName(name, "orderId") {
			t.Errorf("%q is another name than orderId", name)
		}
	}
	for _, name := range []string{"", "order", "orderIds", "order.id", "0rderId"} {
		if failpolicy.SameName("orderId", name) {
			t.Errorf("%q is the same name as orderId", name)
		}
	}
}
