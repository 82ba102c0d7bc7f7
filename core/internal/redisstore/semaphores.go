package redisstore

import "time"

// newPermitSemaphore makes the kind of a semaphore whose permits have leases: each is a holder.
func newPermitSemaphore() *Kind {
	permit := func(operation string) script { return scriptOf("semaphore", "permit", "permit_"+operation) }
	total := func(operation string) script {
		return scriptOf("semaphore", "permit", "permit_total", "permit_"+operation)
	}
	return &Kind{
		Name: "semaphore", Family: "semaphore", Shares: Limited, Holds: Drawn,
		names: names{
			beside: func(key string) []any { return []any{PermitLeases(key)} }, leases: PermitLeases, channel: SemaphoreChannel,
		},
		scripts: scripts{
			acquire: total("acquire"), hold: permit("hold"), renew: permit("renew"), refresh: permit("refresh"),
			release: permit("release"), handOff: permit("handoff"), force: permit("force"), state: permit("state"),
			count: total("count"), clear: scriptOf("semaphore", "permit", "permit_total", "once", "fill", "settle_permit", "settle"),
			terms: func(args []any, t *Terms) []any {
				args = append(args, t.Demand, t.channel, t.verb)
				for _, ghost := range t.Ghosts {
					args = append(args, Drawn.wire(ghost))
				}
				return args
			},
		},
	}
}

// newPlainSemaphore makes the kind of a semaphore whose permits nobody owns.
func newPlainSemaphore() *Kind {
	return &Kind{
		Name: "plain_semaphore", Family: "plain semaphore", Shares: Limited, Holds: Unheld,
		names: names{channel: SemaphoreChannel},
		scripts: scripts{
			acquire: scriptOf("semaphore", "once", "take"), count: scriptOf("semaphore", "count"), clear: leaseless("plain"),
			terms: func(args []any, t *Terms) []any {
				return appendTexts(appendTexts(append(args, t.channel, t.verb), t.Forget), t.Ghosts)
			},
		},
	}
}

// newLatch makes the kind of a latch, which who waits for it has when it is open.
func newLatch() *Kind {
	return &Kind{
		Name: "latch", Family: "latch", Waits: Abreast, Shares: Unlimited, Holds: Unheld,
		names: names{channel: LatchChannel, check: (*Store).CheckLatchName},
		scripts: scripts{
			acquire: scriptOf("semaphore", "await"), count: scriptOf("semaphore", "count"),
			force: scriptOf("semaphore", "latch_force"), clear: leaseless("latch"),
		},
	}
}

// leaseless settles operations on what nobody owns.
func leaseless(kind string) script {
	return scriptOf("semaphore", "once", "fill", "settle_"+kind, "settle")
}

// Settle prepares operations on the count of a key, "<id>:<what>:<n>", each of which is executed
// once however often it is sent, and "~<operation>" those that need not be remembered any more. An
// operation that is among the fields of the finding is settled for good; one that found the count
// set already, or too near the largest one, or the permit not held, is there with Nothing in front.
func (s *Store) Settle(now time.Time, k *Kind, key string, ops []string) Call[[]Finding] {
	return s.SettleAll(now, []Suspicion{{k, key, ops}})
}

// SettleAll is Settle for several keys. Replicas acknowledge it, if the Store wants that.
func (s *Store) SettleAll(now time.Time, list []Suspicion) Call[[]Finding] {
	return s.Clear(now, list).acknowledged(func([]Finding) bool { return true })
}

// Counts reports whether a kind has a count that operations change, see [Store.Settle].
func (k *Kind) Counts() bool { return k.count.Source != nil }

// Nothing is in front of an operation that is settled, and has changed nothing.
const Nothing = "!"

// Counts are those of a semaphore or a latch.
type Counts struct{ Left, Acquired int }

// Count prepares a question for Counts.
func (s *Store) Count(now time.Time, k *Kind, key string) Call[Counts] {
	return typed(s, s.call(now, &k.count, key, append(k.both(key), k.Channel(key), s.publishVerb())...), readCounts).question()
}

func readCounts(reply any) (Counts, error) {
	if list, ok := reply.([]any); ok && len(list) == 2 {
		left, okLeft := list[0].(int64)
		acquired, okAcquired := list[1].(int64)
		if okLeft && okAcquired {
			return Counts{int(left), int(acquired)}, nil
		}
	}
	return Counts{}, unexpected("count", reply)
}
