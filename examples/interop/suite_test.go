package interop_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// item is a requirement that both sides must meet.
type item struct {
	name string
	run  func(t *testing.T, s *site, k kind)
	only []string // topologies; empty: all
	// pick lists the names of the kinds that the item runs with; nil: all kinds of the table.
	pick []string
	not  []string // not lists kinds that the item does not run with
	// alone marks an item that measures or needs separate names: it does not run in parallel.
	alone bool
	// silent marks an item in which Java waits, without a message, until a lease expires.
	silent bool
}

// items lists the items that run for every kind.
//
// If Redisson's multi lock cannot release one of its locks, it releases no further ones and continues to renew the rest.
// So after a forced release, or a lost reply to an unlock, the others stay locked until the process exits.
var items = []item{
	{name: "woken by message", run: wokenByMessage, alone: true},
	{name: "names", run: namesMeet, alone: true},
	{name: "one holder at a time", run: oneAtATime, alone: true, not: []string{"read", "write-then-read"}},
	{name: "renewal keeps others out", run: renewalKeepsOut},
	{name: "forced by Java", run: forcedByJava},
	{name: "forced by Go", run: forcedByGo, not: []string{"multi"}},
	{name: "evicted by Go", run: evictedByGo, not: []string{"multi"}},
	{name: "counts of holds", run: countsOfHolds, not: []string{"non-reentrant", "non-reentrant-fair"}},
	{name: "tokens", run: tokensIncrease, pick: []string{"fenced"}},
	{name: "lost replies, Go's", run: lostRepliesOfGo, only: []string{single}},
	{name: "lost replies, Java's", run: lostRepliesOfJava, only: []string{single}, not: []string{"multi"}},
	{name: "lost renewals", run: lostRenewals, only: []string{single}},
	{name: "cut off", run: cutOff, only: []string{single}, silent: true},
}

func (i item) runsWith(s *site, k kind) bool {
	return k.runsOn(s) &&
		(i.only == nil || slices.Contains(i.only, s.topology)) &&
		(i.pick == nil || slices.Contains(i.pick, k.name)) && !slices.Contains(i.not, k.name)
}

// TestRedisson runs the suite. Its subtests are <version>/<topology>/<item>/<kind>.
func TestRedisson(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for _, i := range items {
			t.Run(i.name, func(t *testing.T) {
				if !i.alone {
					t.Parallel()
				}
				i.runAll(t, s)
			})
		}
		if s.topology != sentinel {
			t.Run("woken by message, no locks", func(t *testing.T) { gatesWake(t, s) })
			t.Run("names, no locks", func(t *testing.T) { t.Parallel(); gatesHaveNames(t, s) })
		}
		for _, w := range wires {
			if w.only == nil || slices.Contains(w.only, s.topology) {
				t.Run("layout/"+w.name, func(t *testing.T) { t.Parallel(); w.run(t, s) })
			}
		}
		for _, m := range meetings {
			if (m.only == nil || slices.Contains(m.only, s.topology)) && s.has(m.since) {
				t.Run(m.name, func(t *testing.T) { t.Parallel(); m.run(t, s) })
			}
		}
		if s.topology == cluster && hasPubSubModes(s.version) {
			t.Run("pubsub modes", func(t *testing.T) { t.Parallel(); pubSubModesMeet(t, s) })
			t.Run("pubsub modes differ", func(t *testing.T) { t.Parallel(); pubSubModesDiffer(t, s) })
		}
		if valkey, found := redisserver.FindValkey(t); found && s.topology == cluster && s.has(withDatabases) {
			t.Run("databases", func(t *testing.T) { t.Parallel(); databasesApart(t, s, valkey) })
		}
		if s.topology == sentinel {
			t.Run("failover", func(t *testing.T) { t.Parallel(); failover(t, s) })
		}
		t.Run("holder stopped and killed", func(t *testing.T) { t.Parallel(); javaStoppedAndKilled(t, s) })
		t.Run("holder of Go killed", func(t *testing.T) { t.Parallel(); goKilled(t, s) })
	})
}

func (i item) runAll(t *testing.T, s *site) {
	t.Helper()
	for _, k := range kinds {
		if !i.runsWith(s, k) {
			continue
		}
		if i.silent && !s.javaWakes(k) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			if !i.alone {
				t.Parallel()
			}
			i.run(t, s, k)
		})
	}
}

// eachSite runs body for every version and topology.
func eachSite(t *testing.T, body func(t *testing.T, s *site)) {
	t.Helper()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			classPath := interop.Build(t, version)
			for _, top := range topologies {
				t.Run(top.name, func(t *testing.T) { body(t, newSite(t, version, classPath, top)) })
			}
		})
	}
}
