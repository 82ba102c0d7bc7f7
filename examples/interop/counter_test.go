package interop_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// counterDeleted deletes the token counter. Tokens of Go do not decrease, and Java continues from them. If
// Java draws the next token, its tokens start again at 1, but the next token of Go is larger than all earlier
// ones.
func counterDeleted(t *testing.T, s *site) {
	name := unique("fenced")
	java, own := javaTokens(s, name), goTokens(s.locks(t), name)
	counter := prefixed("redisson_lock_token", name)
	last := int64(0)
	take := func(h tokenHolder) int64 {
		token, free := h.take(t, 0)
		free(t)
		return token
	}
	for round := range 3 {
		for _, h := range []tokenHolder{own, java, own, java, java} {
			token := take(h)
			if token <= last {
				t.Errorf("round %d, %s: got token %d after %d", round, h.name, token, last)
			}
			last = token
		}
		if n := s.master(name).Del(t.Context(), counter).Val(); n != 1 {
			t.Errorf("counter %s does not exist", counter)
		}
	}
	t.Logf("Java draws the first token without the counter: %d after %d", take(java), last)
	if token := take(own); token <= last {
		t.Errorf("Go after it: got token %d after %d", token, last)
	}
}

// tokenOfAnyKind draws tokens in Go for locks that are not fenced in Java. They are held like any other lock, and
// their tokens increase together with the tokens of Java's fenced lock of that name.
func tokenOfAnyKind(t *testing.T, s *site) {
	for _, name := range []string{"reentrant", "fair", "write"} {
		k := kindOf(name)
		key := unique("token")
		java, locks := javaParty{s.java}, s.locks(t)
		last := int64(0)
		for range 3 {
			_, hold, err := k.lock(locks, key).Acquire(t.Context(), core.WithToken(), core.WaitTime(5*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if hold.Token() <= last {
				t.Errorf("%s: got token %d after %d", name, hold.Token(), last)
			}
			last = hold.Token()
			wantRefused(t, java, k, key)
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			take(t, java, k, key).release(t)
		}
		if got := s.java.Thread(t).Lock(interop.Fenced, key).Start("getToken").Number(); got != last {
			t.Errorf("%s: getToken of Java: got %d, want %d", name, got, last)
		}
		s.wantFree(t, k, key)
	}
}
