package main

import (
	"maps"
	"sync"
	"time"
)

// database stands for yours, so that this program needs none. It is one map, and has
// of a real database only what matters here:
//
//   - A transaction reads what was committed when it began (snapshot reads).
//   - Others see its writes when it has committed.
//   - The last commit wins; nobody checks what it was computed from.
//
// MySQL's REPEATABLE READ does that to a SELECT followed by an UPDATE with a computed
// value, except that its snapshot is taken by the first read. PostgreSQL's refuses the
// second writer, who must then retry. In READ COMMITTED each statement sees what is
// committed by then: the early unlock is the mistake that is left. Whatever yours
// does, the right order does not depend on it.
type database struct {
	mu        sync.Mutex
	committed map[string]int
}

func newDatabase() *database { return &database{committed: make(map[string]int)} }

// transaction belongs to one goroutine. One that is not committed never happened.
type transaction struct {
	db       *database
	snapshot map[string]int
	writes   map[string]int
}

func (db *database) begin() *transaction {
	db.mu.Lock()
	defer db.mu.Unlock()
	return &transaction{db: db, snapshot: maps.Clone(db.committed), writes: make(map[string]int)}
}

// read gives the transaction's own write, or what was committed when it began.
func (tx *transaction) read(key string) int {
	if value, written := tx.writes[key]; written {
		return value
	}
	return tx.snapshot[key]
}

func (tx *transaction) write(key string, value int) { tx.writes[key] = value }

// commit takes a while, as writing to a disk does.
func (tx *transaction) commit() {
	time.Sleep(time.Millisecond)
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	maps.Copy(tx.db.committed, tx.writes)
}
