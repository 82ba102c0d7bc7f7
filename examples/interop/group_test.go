package interop_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// groupOf returns the lock of some values of a group, which is the name.
func groupOf(values ...string) kind {
	return kind{
		name: "group", java: interop.Group, waited: subscribed,
		lock: func(locks *core.Client, group string) core.Lock { return locks.GroupLock(group, values...) },
		keys: func(group string) []string { return append([]string{group}, values...) },
	}
}

// The fields of values in Redis, by each codec.
var (
	kryo  = map[string]string{"a": "Jon6GCcO+0QSJkhre5wXYA", "Jack_001": "DScHoUUqdQJ9J7Ux220rcQ", "münchen": "mDsk7c6yLsj128R6NqphQQ"}
	plain = map[string]string{"Jack_001": "7pNoDdizVy2xY792MaFv+w"}
)

// wantGroup checks that the hash of a group contains the three fields of each of some values, and no others.
func (s *site) wantGroup(t *testing.T, group, holder string, values map[string]string) {
	t.Helper()
	hash, want := s.hash(t, group), map[string]string{}
	for _, field := range values {
		ends := field + ":" + holder + ":expire_time"
		if ms, err := strconv.ParseInt(hash[ends], 10, 64); err != nil || time.Until(time.UnixMilli(ms)) > time.Minute {
			t.Errorf("%s: the end of the lease is %q", group, hash[ends])
		}
		want[field], want[field+":"+holder+":lock_count"], want[ends] = holder, "1", hash[ends]
	}
	if !maps.Equal(hash, want) {
		t.Errorf("%s: got %v, want %v", group, hash, want)
	}
}

// handGroupOver lets a caller of one side wait for values of a group. A holder of the other side has one of them. A message
// wakes the waiter.
func (s *site) handGroupOver(t *testing.T, d direction, fields map[string]string) {
	t.Helper()
	values, name := slices.Sorted(maps.Keys(fields)), unique("group")
	held, overlapping := groupOf(values...), groupOf(values[len(values)-1], "other")
	holder := take(t, d.holder, held, name)
	s.wantGroup(t, name, holder.field, fields)
	wantRefused(t, d.waiter, overlapping, name)
	wantRefused(t, d.waiter, held, name)
	take(t, d.waiter, groupOf("other"), name).release(t)
	s.wantGroup(t, name, holder.field, fields)
	waits := d.waiter.ask(t, overlapping, name)
	d.waiter.awaitWaiter(t, s, overlapping, name)
	released := holder.release(t)
	next := receive(t, waits, d.waiter.String())
	if took := next.at.Sub(released); took > wokenWithin {
		t.Errorf("waited %s after the release, want at most %s", took, wokenWithin)
	}
	next.release(t)
	s.wantGone(t, name)
}

// groupsOverlap lets values of a group exclude each other in both directions, with Redisson's default codec.
func groupsOverlap(t *testing.T, s *site) {
	for _, d := range bothWays(s.java, s.locks(t)) {
		t.Run(d.String(), func(t *testing.T) { t.Parallel(); s.handGroupOver(t, d, kryo) })
	}
}

// groupOfStrings does the same with StringCodec.
func groupOfStrings(t *testing.T, s *site) {
	config := s.config
	config.Strings = true
	raw := core.WithGroupCodec(func(value string) []byte { return []byte(value) })
	for _, d := range bothWays(s.open(t, s.jvm, config), s.locks(t, raw)) {
		t.Run(d.String(), func(t *testing.T) { t.Parallel(); s.handGroupOver(t, d, plain) })
	}
}

// groupRenewed lets each side hold a group for more than two leases. Then the process of the holder is killed, and the
// other side gets the group after the lease.
func groupRenewed(t *testing.T, s *site) {
	for _, d := range bothWays(s.brief, s.locks(t, core.WithWatchdog(briefLease))) {
		t.Run("renewed, "+d.String(), func(t *testing.T) {
			t.Parallel()
			k, name := groupOf("a", "b"), unique("group")
			holder := take(t, d.holder, k, name)
			for end := time.Now().Add(briefLease*2 + briefLease/5); time.Now().Before(end); {
				wantRefused(t, d.waiter, groupOf("b", "c"), name)
				time.Sleep(briefLease / 10) // between checks, for more than two leases
			}
			holder.release(t)
			take(t, d.waiter, k, name).release(t)
			s.wantGone(t, name)
		})
	}
	t.Run("killed, Go after Java", func(t *testing.T) {
		t.Parallel()
		jvm, name := interop.StartJVM(t, s.classPath), unique("group")
		java := javaParty{s.open(t, jvm, s.briefConfig())}
		claims := []claim{{groupOf("a", "b"), name, take(t, java, groupOf("a", "b"), name)}}
		releaseAll(t, takeOver(t, goParty{s.locks(t)}, claims, jvm.Kill))
	})
	t.Run("killed, Java after Go", func(t *testing.T) {
		t.Parallel()
		name := unique("group")
		kill := startHolder(t, s, "group="+name)
		releaseAll(t, takeOver(t, javaParty{s.brief}, []claim{{kind: groupOf("a", "b"), name: name}}, kill))
	})
}

// groupForced lets each side release a value of the other side by force. Go finds out at its next renewal, and Java when
// it unlocks.
func groupForced(t *testing.T, s *site) {
	t.Run("by Java", func(t *testing.T) {
		t.Parallel()
		name := unique("group")
		ctx, hold, err := s.locks(t, core.WithWatchdog(forcedLease)).GroupLock(name, "a", "b").Acquire(t.Context(), core.WaitTime(0))
		if err != nil {
			t.Fatal(err)
		}
		forced := time.Now()
		s.java.Thread(t).Lock(interop.Group, name, "a").ForceUnlock().OK()
		take(t, javaParty{s.java}, groupOf("a"), name).release(t)
		awaitEnd(t, ctx, core.ErrLost)
		if took := time.Since(forced); took > noticeWithin {
			t.Errorf("noticed after %s, want at most %s", took, noticeWithin)
		}
		_ = hold.Release(t.Context()) // it frees "b"
		take(t, javaParty{s.java}, groupOf("a", "b"), name).release(t)
		s.wantGone(t, name)
	})
	t.Run("by Go", func(t *testing.T) {
		t.Parallel()
		name, locks := unique("group"), s.locks(t)
		holder := take(t, javaParty{s.java}, groupOf("a"), name)
		if was, err := locks.GroupLock(name, "a").ForceRelease(t.Context()); !was || err != nil {
			t.Errorf("ForceRelease of a value that Java holds: got %t, %v", was, err)
		}
		next := take(t, goParty{locks}, groupOf("a"), name)
		_, err := holder.free(t)
		wantNotHeld(t, err)
		next.release(t)
	})
}
