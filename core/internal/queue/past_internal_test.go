package queue

import (
	"testing"
	"time"
)

type fixedHolder string

func (a fixedHolder) Field() string        { return string(a) }
func (a fixedHolder) Lasts(time.Time) bool { return true }

// A past that is created later is equal to a past that was kept since the first turn.
func TestQueue_EnsurePast_FirstTurn(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	q := New(Config{PerKey: 1, InAll: 1})
	q.RecordGrant("k", nil, Grant{Holder: fixedHolder("a"), Kind: "lock", Sent: begun}, begun)
	kq := q.lock("k").queues["k"]
	if kq.past != nil {
		t.Error("the queue has a past although no other client wants the lock")
	}
	var want past
	want.beginRun(begun, 1)
	if got := *kq.ensurePast(); got != want {
		t.Errorf("the past is %+v, want %+v", got, want)
	}
}
