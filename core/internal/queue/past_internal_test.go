package queue

import (
	"testing"
	"time"
)

type anybody string

func (a anybody) Field() string        { return string(a) }
func (a anybody) Lasts(time.Time) bool { return true }

// What is not written down while a lock is held for the first time is as if it had been.
func TestQueue_PastOfTheFirstTurn(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	q := New(Config{PerKey: 1, InAll: 1})
	q.Acquired("k", nil, Grant{Holder: anybody("a"), Kind: "lock", Sent: begun}, begun)
	in := q.lock("k").queues["k"]
	if in.lasting != nil {
		t.Error("a lock that nobody else wants has a past of its own")
	}
	var want lasting
	want.begin(begun, 1)
	if got := *in.past(); got != want {
		t.Errorf("the past is %+v, want %+v", got, want)
	}
}
