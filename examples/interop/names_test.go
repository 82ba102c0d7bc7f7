package interop_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

var names atomic.Int64

// unique returns a name that no other test uses.
func unique(what string) string { return what + ":" + strconv.FormatInt(names.Add(1), 10) }

// lockNames are names of locks with different places of their hash tag. The key of each is the name, and the channel has
// the same slot.
var lockNames = []string{"foo", "a:b", "{t}:x", "x{t}y", "žluťoučký:鍵"}

// spellings are ways to derive keys from names, with a name mapper in Java.
var spellings = []struct {
	name, prefix string
	own          core.Option
}{
	{"", "", core.WithPrefix("")},
	{"prefix ", "shop:", core.WithPrefix("shop:")},
	{"mapper ", "mapped:", core.WithNameMapper(func(name string) string { return "mapped:" + name })},
}

// namesMeet lets both sides use the same names, plain, with a prefix and with a name mapper. It also checks the key.
func namesMeet(t *testing.T, s *site, k kind) {
	for _, spelling := range spellings {
		if k.name == "fair" && spelling.prefix != "" && !mapsFairQueues(s.version) {
			continue
		}
		config := s.config
		config.Prefix = spelling.prefix
		directions := bothWays(s.open(t, s.jvm, config), s.locks(t, spelling.own))
		for _, name := range lockNames {
			for _, d := range directions {
				t.Run(fmt.Sprintf("%s%s, %s", spelling.name, name, d), func(t *testing.T) {
					meet(t, s, k, d, spelling.prefix, name)
				})
			}
		}
	}
}

// mapsFairQueues reports whether a version of Redisson derives the queue of a fair lock from the mapped name. Earlier
// versions derive it from the name itself.
func mapsFairQueues(version string) bool { return atLeast(version, 3, 52) }

// meet lets one side wait for a lock of the other side. Some versions of Redisson sometimes miss a message.
// They may miss one, but not two in a row.
func meet(t *testing.T, s *site, k kind, d direction, prefix, name string) {
	t.Helper()
	took := meetOnce(t, s, k, d, prefix, name)
	if _, java := d.waiter.(javaParty); java && took > wokenWithin && missesMessages(s.version) {
		t.Logf("waited %s after the release: Redisson %s has missed the message", took, s.version)
		took = meetOnce(t, s, k, d, prefix, name)
	}
	if took > wokenWithin {
		t.Errorf("waited %s after the release, want at most %s", took, wokenWithin)
	}
}

// missesMessages reports whether waiters of a version of Redisson miss messages. The release notes of 3.28.0 list this as
// fixed. It also happens between two clients of Redisson.
func missesMessages(version string) bool { return !atLeast(version, 3, 28) }

func meetOnce(t *testing.T, s *site, k kind, d direction, prefix, name string) time.Duration {
	t.Helper()
	rival := k.rivalKind()
	holder := take(t, d.holder, k, name)
	s.wantHeld(t, k.mapped(prefix), name, holder.field, "1")
	wantRefused(t, d.waiter, rival, name)
	grants := d.waiter.ask(t, rival, name)
	d.waiter.awaitWaiter(t, s, rival.mapped(prefix), name)
	released := holder.release(t)
	waiter := receive(t, grants, d.String())
	s.wantHeld(t, rival.mapped(prefix), name, waiter.field, "1")
	waiter.release(t)
	s.wantFree(t, k.mapped(prefix), name)
	return waiter.at.Sub(released)
}
