package redisstore

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Suspicion is a lock, and fields that nobody holds it with but may be there.
type Suspicion struct {
	Kind   *Kind
	Key    string
	Fields []string
}

// Finding is what was found of one Suspicion.
type Finding struct {
	Fields []string // of the lock, before those of the Suspicion were cleared
	Err    error    // nothing is known
}

// Clear prepares the freeing of the locks that are held by fields under suspicion, all of one
// kind. In a Cluster the keys are of one slot.
func (s *Store) Clear(now time.Time, list []Suspicion) Call[[]Finding] {
	size := 2
	for _, l := range list {
		size += 3 + len(l.Fields)
	}
	args := make([]any, 0, size)
	args = append(args, len(list))
	for _, l := range list {
		args = append(args, l.Key)
	}
	args = append(args, s.publishVerb())
	for _, l := range list {
		args = append(args, l.Kind.Channel(l.Key), len(l.Fields))
		for _, field := range l.Fields {
			args = append(args, field)
		}
	}
	return typed(s, s.call(now, list[0].Kind.clear.over(len(list)), list[0].Key, args...), func(reply any) ([]Finding, error) {
		return readCleared(reply, len(list))
	})
}

// Clears is how many locks one Clear may be about.
func (s *Store) Clears() int {
	if s.apartKeys() {
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

// findingOf reads what the script says of one lock. Where the key is no hash any more,
// nobody holds it.
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
