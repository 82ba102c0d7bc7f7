package lockview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core"
)

// Change is what has become of a lock from one look to the next.
type Change struct {
	Event string   `json:"event"` // held, freed, passed, changed or waiters
	Text  string   `json:"-"`     // for people
	Lost  []string `json:"before,omitempty"`
	Lock  Lock     `json:"lock"`
}

// Seen is what was seen of locks at one time, by their keys.
type Seen map[string]core.LockEntry

// Add notes a lock that was looked at. Free ones without waiters are forgotten.
func (s Seen) Add(e core.LockEntry) {
	if e.HolderCount > 0 || e.WaiterCount > 0 || e.Kind == core.KindPlainSemaphore {
		s[e.Key] = e
	}
}

// Changes are what has changed since before, by key.
func (s Seen) Changes(before Seen) []Change {
	keys := maps.Clone(s)
	maps.Copy(keys, before)
	var list []Change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		old, now := before[key], s[key]
		now.Key = key
		if event, text := change(&old, &now); event != "" {
			list = append(list, Change{Event: event, Text: text, Lost: fields(&old), Lock: JSON(now)})
		}
	}
	return list
}

// change names what has happened between two looks; nothing if the lock is as it was.
func change(old, now *core.LockEntry) (event, text string) {
	switch before, after := fields(old), fields(now); {
	case old.HolderCount == 0 && now.HolderCount > 0:
		return "held", fmt.Sprintf("held by %s, lease left %s", HeldBy(*now), Left(now.TTL))
	case old.HolderCount > 0 && now.HolderCount == 0:
		return "freed", "freed, was held by " + HeldBy(*old)
	case !slices.ContainsFunc(after, func(f string) bool { return slices.Contains(before, f) }) && len(after) > 0:
		return "passed", fmt.Sprintf("passed from %s to %s, lease left %s", HeldBy(*old), HeldBy(*now), Left(now.TTL))
	case old.HolderCount != now.HolderCount || strings.Join(before, "\n") != strings.Join(after, "\n") || old.Available != now.Available:
		return "changed", "held by " + HeldBy(*now)
	case old.WaiterCount != now.WaiterCount:
		return "waiters", fmt.Sprintf("%s, before %d", counted(now.WaiterCount, "waiter"), old.WaiterCount)
	default:
		return "", ""
	}
}

// fields are those of the holders, in order.
func fields(e *core.LockEntry) (list []string) {
	for _, h := range e.Holders {
		list = append(list, h.Field)
	}
	slices.Sort(list)
	return list
}
