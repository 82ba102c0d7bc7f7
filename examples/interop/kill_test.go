package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/interop"
)

// goneWithin limits the time until a waiter gets the lock of a dead holder, which expires with its lease.
const goneWithin = briefLease + 3*time.Second

// claim is a lock of one kind that a test holds together with locks of other kinds.
type claim struct {
	kind  kind
	name  string
	grant grant
}

// holdAll acquires a lock of every kind for a party.
func holdAll(t *testing.T, s *site, p party) []claim {
	t.Helper()
	var claims []claim
	for _, k := range kinds {
		if k.runsOn(s) {
			name := unique("gone")
			claims = append(claims, claim{k, name, take(t, p, k, name)})
		}
	}
	return claims
}

// takeOver makes a party wait for all of these locks while something happens to the holder.
func takeOver(t *testing.T, p party, claims []claim, happens func()) []claim {
	t.Helper()
	waits := make([]<-chan grant, len(claims))
	for i, c := range claims {
		wantRefused(t, p, c.kind.rivalKind(), c.name)
		waits[i] = p.ask(t, c.kind.rivalKind(), c.name)
	}
	gone := time.Now()
	happens()
	taken := make([]claim, len(claims))
	for i, c := range claims {
		g := receive(t, waits[i], p.String()+" to have "+c.kind.name+" "+c.name)
		if took := g.at.Sub(gone); took > goneWithin {
			t.Errorf("%s: %s got it after %s, want at most %s", c.kind.name, p, took, goneWithin)
		}
		taken[i] = claim{c.kind.rivalKind(), c.name, g}
	}
	return taken
}

func releaseAll(t *testing.T, claims []claim) {
	t.Helper()
	for _, c := range claims {
		c.grant.release(t)
	}
}

// javaStoppedAndKilled stops a process of Java that holds locks of every kind. Go gets them after the lease, and keeps
// them when the process continues. Then the process is killed.
func javaStoppedAndKilled(t *testing.T, s *site) {
	jvm := interop.StartJVM(t, s.classPath)
	java, own := javaParty{s.open(t, jvm, s.briefConfig())}, goParty{s.locks(t)}

	before := holdAll(t, s, java)
	after := takeOver(t, own, before, jvm.Stop)
	jvm.Continue()
	for i, c := range before {
		_, err := c.grant.free(t)
		wantNotHeld(t, err)
		s.wantHeld(t, after[i].kind, c.name, after[i].grant.field, "1")
	}
	releaseAll(t, after)

	releaseAll(t, takeOver(t, own, holdAll(t, s, java), jvm.Kill))
}

// goKilled kills a process of Go that holds locks of every kind. Java gets them after the lease.
func goKilled(t *testing.T, s *site) {
	var words []string
	var claims []claim
	for _, k := range kinds {
		if k.runsOn(s) && s.javaWakes(k) {
			c := claim{kind: k, name: unique("gone")}
			claims, words = append(claims, c), append(words, k.name+"="+c.name)
		}
	}
	kill := startHolder(t, s, words...)
	releaseAll(t, takeOver(t, javaParty{s.brief}, claims, kill))
}

// javaWakes reports whether a thread of Java that waits for a lock looks again when the lease ends, without a message.
// Before 3.32 a thread in the queue of a fair lock computes a negative time if the lease that it saw on arrival was
// renewed. It then waits only for a message.
func (s *site) javaWakes(k kind) bool { return k.name != "fair" || atLeast(s.version, 3, 32) }

// startHolder starts a process of Go that acquires locks, given by kind: "read=name". The process may be killed before
// the end of the test.
func startHolder(t *testing.T, s *site, words ...string) (kill func()) {
	t.Helper()
	kill, _ = startProcess(t, s, holderEnv, words)
	return kill
}

// startWaiter starts a process of Go that waits for locks, given by kind.
func startWaiter(t *testing.T, s *site, words ...string) (kill func()) {
	t.Helper()
	kill, _ = startProcess(t, s, waiterEnv, words)
	return kill
}

// startTurns starts a process of Go that acquires the lock once for each call of ask. ask returns before the lock is
// acquired.
func startTurns(t *testing.T, s *site, word string) (ask, kill func()) {
	t.Helper()
	kill, in := startProcess(t, s, turnsEnv, []string{word})
	return func() {
		if _, err := fmt.Fprintln(in); err != nil {
			t.Error(err)
		}
	}, kill
}

func startProcess(t *testing.T, s *site, mode string, words []string) (kill func(), in io.Writer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), mode+"="+strings.Join(words, " "),
		holderModeEnv+"="+s.topology, holderAddrsEnv+"="+strings.Join(s.config.Addrs, ","))
	input, err := cmd.StdinPipe() // the process ends with it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	if said, err := bufio.NewReader(out).ReadString('\n'); said != heldWord+" <nil>\n" {
		t.Fatalf("the holder printed %q, %v", said, err)
	}
	return kill, input
}
