package redisstore

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Suspicion is a lock with fields that unanswered commands may have left in it.
type Suspicion struct {
	Kind   *Kind
	Key    string
	Fields []string
}

// Finding is the result for one Suspicion.
type Finding struct {
	Fields []string // the fields of the lock before the fields of the Suspicion were cleared
	Err    error    // the lock could not be read
}

// Clear prepares the release of locks whose holders are among the fields of the Suspicions. All locks
// have the same kind. In a Cluster their keys are in one slot.
func (s *Store) Clear(now time.Time, list []Suspicion) Call[[]Finding] {
	size := 2
	for _, l := range list {
		size += 6 + len(l.Fields)
	}
	args := append(make([]any, 0, size), 0)
	for _, l := range list {
		args = l.Kind.appendClearKeys(args, l.Key)
	}
	args[0] = len(args) - 1
	args = append(args, s.publishVerb())
	for _, l := range list {
		args = append(args, l.Kind.Channel(l.Key), len(l.Fields))
		for _, field := range l.Fields {
			args = append(args, l.Kind.member(l.Key, field))
		}
	}
	return newCall(s, s.call(now, list[0].Kind.clear.over(len(list)), list[0].Key, args...), func(reply any) ([]Finding, error) {
		return readCleared(reply, len(list))
	})
}

// appendClearKeys appends the keys that a clear of a lock declares. If the waiters queue in Redis, these include the keys of
// the queue. Redis then refuses the script while only some of them have moved to another node (TRYAGAIN), and the reaper
// asks again.
func (k *Kind) appendClearKeys(args []any, key string) []any {
	args = append(args, k.hash(key))
	if k.Waits == InRedis {
		args = append(args, k.beside(key)...)
	}
	return args
}

// Clears returns the maximum number of locks in one Clear.
func (s *Store) Clears() int {
	if s.oneLockPerScript() {
		return 1
	}
	return renewChunk / 2
}

func readCleared(reply any, n int) ([]Finding, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != n {
		return nil, unexpected("clear", reply)
	}
	found := make([]Finding, n)
	for i := range found {
		found[i] = findingOf(list[i])
	}
	return found, nil
}

// findingOf reads the reply of the script for one lock. If the key is no longer a hash, the lock has no
// holder.
func findingOf(reply any) Finding {
	switch v := reply.(type) {
	case []any:
		var f Finding
		for _, field := range v {
			if text, ok := field.(string); ok {
				f.Fields = append(f.Fields, text)
			}
		}
		return f
	case string:
		if err := wire.ReplyError(v); !wire.WrongType(err) {
			return Finding{Err: err}
		}
		return Finding{}
	default:
		return Finding{Err: unexpected("clear", reply)}
	}
}

// Nothing precedes an operation in a Finding of [Store.Settle] if the operation changed nothing.
const Nothing = "!"

// Settle prepares operations on the count of a key, each "<id>:<what>:<n>". Redis executes each
// operation once, however often it is sent. "~<operation>" names an operation that Redis no longer
// needs to remember. The fields of the Finding are the operations that will not change the count any
// more. An operation changes nothing if the count was set already or is too near the maximum, or if
// the permit was not held.
func (s *Store) Settle(now time.Time, k *Kind, key string, ops []string) Call[[]Finding] {
	return s.SettleAll(now, []Suspicion{{k, key, ops}})
}

// SettleAll is like Settle, but for several keys. If Config.Replication requires it, replicas have to acknowledge the
// call.
func (s *Store) SettleAll(now time.Time, list []Suspicion) Call[[]Finding] {
	return s.Clear(now, list).withAcks(func([]Finding) bool { return true })
}

// Counts holds the counts of a semaphore or a latch.
type Counts struct{ Left, Acquired int }

// Count prepares a query for Counts.
func (s *Store) Count(now time.Time, k *Kind, key string) Call[Counts] {
	return newCall(s, s.call(now, &k.count, key, append(k.keyArgs(key), k.Channel(key), s.publishVerb())...), readCounts).markReadOnly()
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
