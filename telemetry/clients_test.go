package telemetry_test

import (
	"testing"
)

// A client, its oldest waiter and its oldest hold are reported until it is closed.
func TestClients_Gauges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	h.want(t, 1, "distributed_lock.client.info", "client.id", locks.ID())
	h.want(t, 0, "distributed_lock.oldest_wait", "client.id", locks.ID())
	_, hold, err := locks.Lock("k").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if age, ok := h.value(t, "distributed_lock.longest_hold", "client.id", locks.ID()); !ok || age <= 0 {
		t.Errorf("a hold is %v s old (exists: %t)", age, ok)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	h.want(t, 0, "distributed_lock.longest_hold", "client.id", locks.ID())
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, metric := range []string{"client.info", "longest_hold"} {
		if _, exists := h.value(t, "distributed_lock."+metric, "client.id", locks.ID()); exists {
			t.Errorf("%s shows a closed client", metric)
		}
	}
}
