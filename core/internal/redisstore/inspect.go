package redisstore

import (
	"strconv"
	"time"
)

// Found describes the lock in a key at one instant, as far as the layout of the value shows it.
type Found struct {
	Key  string
	What string // name of a kind; empty: another value, or none; see Absent

	Absent bool          // neither the key nor a queue of it exists
	TTL    time.Duration // as PTTL returns it; for permits the rest of the lease that expires first

	Holders []FoundHolder // no more than MostFound
	Held    int           // the number of all holders
	Waiters []string      // in the queue of a fair lock, the next one first; no more than MostFound
	Waiting int           // the number of all waiters
	Token   int64         // the last token drawn; 0: none
	Left    int64         // available permits, or the count of a latch
}

// FoundHolder is one holder of a lock.
type FoundHolder struct {
	Field string
	Count int64
	TTL   time.Duration // rest of this hold; negative: it does not expire
}

// MostFound is the maximum number of holders and of waiters that are listed for one lock.
const MostFound = 50

// InspectSource returns the script that inspects a key of any kind.
func InspectSource() string { return sourceOf(inspection()) }

// Inspect prepares a query for a Found.
func (s *Store) Inspect(now time.Time, key string) Call[Found] {
	return newCall(s, s.call(now, &s.inspection, key, append([]any{1, key}, inspectArgs(key)...)...), readerOf(key)).markReadOnly()
}

// inspectArgs returns the arguments of the inspection of a key that follow the key.
func inspectArgs(key string) []any {
	return []any{FairQueue(key), tokenCounter(key), PermitLeases(key), MostFound}
}

func readerOf(key string) func(reply any) (Found, error) {
	return func(reply any) (Found, error) { return readFound(key, reply) }
}

func readFound(key string, reply any) (Found, error) {
	r := replyReader{rest: elementsOf(reply), ok: true}
	f := Found{Key: key, What: r.text()}
	f.TTL = r.duration()
	f.Held = int(r.number())
	for holders := (replyReader{rest: r.list(), ok: true}); len(holders.rest) > 0; {
		f.Holders = append(f.Holders, FoundHolder{holders.text(), holders.integer(), holders.duration()})
		r.ok = r.ok && holders.ok
	}
	f.Waiting = int(r.number())
	for waiters := (replyReader{rest: r.list(), ok: true}); len(waiters.rest) > 0; {
		f.Waiters = append(f.Waiters, waiters.text())
		r.ok = r.ok && waiters.ok
	}
	f.Token = r.integer()
	f.Left = r.integer()
	if !r.ok {
		return Found{}, unexpected("inspect", reply)
	}
	if f.What == "none" {
		f.What, f.Absent = "", true
	}
	return f, nil
}

// replyReader takes the elements of a reply one by one. ok becomes false when an element has the
// wrong type.
type replyReader struct {
	rest []any
	ok   bool
}

func elementsOf(reply any) []any {
	v, _ := reply.([]any) //nolint:errcheck // empty then
	return v
}

func (r *replyReader) next() any {
	if len(r.rest) == 0 {
		r.ok = false
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *replyReader) text() string {
	v, ok := r.next().(string)
	r.ok = r.ok && ok
	return v
}

func (r *replyReader) number() int64 {
	v, ok := r.next().(int64)
	r.ok = r.ok && ok
	return v
}

func (r *replyReader) duration() time.Duration { return time.Duration(r.number()) * time.Millisecond }

func (r *replyReader) list() []any {
	v, ok := r.next().([]any)
	r.ok = r.ok && ok
	return v
}

// integer reads a number in a string. It returns 0 for the empty string.
func (r *replyReader) integer() int64 {
	text := r.text()
	if text == "" {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	r.ok = r.ok && err == nil
	return v
}
