package redisstore

import "strings"

// newFair makes the fair kind. Who notifies others notifies the head of its queue.
func newFair(kind Kind) *Kind {
	kind.Name, kind.Family, kind.Waits = "fair", "fair lock", InRedis
	kind.beside, kind.terms = fairKeys, fairTerms
	token := strings.ReplaceAll(sourceOf(scriptOf("token")), "KEYS[2]", "KEYS[5]") // after fairKeys
	kind.acquire, kind.acquireAll = scriptFrom(token+sourceOf(scriptOf("fair", "fair_acquire"))), script{}
	kind.refresh, kind.release = scriptOf("fair", "refresh"), scriptOf("fair", "release")
	kind.handOff, kind.force = scriptOf("token", "fair", "handoff"), scriptOf("holder", "fair", "force")
	kind.clear = scriptOf("fair", "fair_clear")
	return &kind
}

// fairKeys are the queue of a fair lock, its deadlines, and when who of it was seen.
func fairKeys(key string) []any {
	return []any{FairQueue(key), FairTimeouts(key), behind(key, "interlock_seen")}
}

// fairTerms says whether a place is wanted, and how a waiter is notified, and looked for.
func fairTerms(args []any, t *Terms) []any {
	waits := 0
	if t.Wait > 0 {
		waits = 1
	}
	return appendTexts(append(args, waits, t.verb, t.count), t.Ghosts)
}
