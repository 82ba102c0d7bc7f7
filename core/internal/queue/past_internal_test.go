package queue

import (
	"testing"
	"time"
)

type fixedHolder string

func (a fixedHolder) Field() string        { return string(a) }
func (a fixedHolder) Lasts(time.Time) bool { return true }

// What is not written down while a lock is held for the first time is as if it had been.
func TestQueue_PastOfTheFirstTurn(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	q := New(Config{PerKey: 1, InAll: 1})
	q.Acquired("k", nil, Grant{Holder: fixedHolder("a"), Kind: "lock", Sent: begun}, begun)
	in := q.lock("k").queues["k"]
	if in.past != nil {
		t.Error("a lock that nobody else wants has a past of its own")
	}
	var want past
	want.begin(begun, 1)
	if got := *in.remember(); got != want {
		t.Errorf("the past is %+v, want %+v", got, want)
	}
}
