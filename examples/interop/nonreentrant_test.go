package interop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// enteredTwice lets a holder of each side acquire its non-reentrant lock again. Both libraries refuse that at once and
// change nothing, and the other side gets the lock after one release.
func enteredTwice(t *testing.T, s *site) {
	for _, name := range []string{"non-reentrant", "non-reentrant-fair"} {
		t.Run(name+", Java", func(t *testing.T) { t.Parallel(); enteredTwiceByJava(t, s, kindOf(name)) })
		t.Run(name+", Go", func(t *testing.T) { t.Parallel(); enteredTwiceByGo(t, s, kindOf(name)) })
	}
}

func enteredTwiceByJava(t *testing.T, s *site, k kind) {
	own, name := goParty{s.locks(t)}, unique("twice")
	thread := s.java.Thread(t)
	lock := thread.Lock(k.java, name)
	lock.Lock().OK()
	for what, again := range map[string]error{
		"lock":          lock.Lock().Answer().Err,
		"tryLock":       lock.TryOnce().Answer().Err,
		"tryLock(wait)": lock.Try(time.Minute).Answer().Err,
	} {
		if again == nil || !strings.Contains(again.Error(), "IllegalMonitorStateException") {
			t.Errorf("the second %s: got %v, want IllegalMonitorStateException", what, again)
		}
	}
	s.wantHeld(t, k, name, thread.Field(), "1")
	wantRefused(t, own, k, name)
	waits := own.ask(t, k, name)
	own.awaitWaiter(t, s, k, name)
	lock.Unlock().OK()
	receive(t, waits, "Go").release(t)
	s.wantFree(t, k, name)
}

func enteredTwiceByGo(t *testing.T, s *site, k kind) {
	java, name := javaParty{s.java}, unique("twice")
	lock := k.lock(s.locks(t), name)
	err := lock.Do(t.Context(), func(ctx context.Context) error {
		if _, _, err := lock.Acquire(ctx); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("the second Acquire: got %v, want ErrInvalid", err)
		}
		hold := core.MustHold(ctx, name)
		s.wantHeld(t, k, name, hold.Field(), "1")
		wantRefused(t, java, k, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	take(t, java, k, name).release(t)
	s.wantFree(t, k, name)
}
