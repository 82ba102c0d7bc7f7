package main

import (
	"maps"
	"sync"
	"time"
)

// database stands for a real database. It is a map with the relevant properties of a
// database:
//
//   - A transaction reads the data that was committed before it began (snapshot reads).
//   - Other transactions see its writes after it commits.
//   - The last commit wins, even if it was computed from old data.
//
// MySQL in REPEATABLE READ does this with a SELECT followed by an UPDATE with a computed value, except that
// the first read takes the snapshot. PostgreSQL in REPEATABLE READ refuses the second writer, which must
// retry. In READ COMMITTED each statement sees the data that is committed at that time: there, only the early
// unlock is a mistake. The correct order works with every database.
type database struct {
	mu        sync.Mutex
	committed map[string]int
}

func newDatabase() *database { return &database{committed: make(map[string]int)} }

// transaction belongs to one goroutine. Without a commit it has no effect.
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

// read returns the value that the transaction wrote or, if there is none, the value that was
// committed before it began.
func (tx *transaction) read(key string) int {
	if value, written := tx.writes[key]; written {
		return value
	}
	return tx.snapshot[key]
}

func (tx *transaction) write(key string, value int) { tx.writes[key] = value }

// commit takes some time, like a write to a disk.
func (tx *transaction) commit() {
	time.Sleep(time.Millisecond)
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	maps.Copy(tx.db.committed, tx.writes)
}
