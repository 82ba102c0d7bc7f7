package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core/fence"
)

// open opens a database with the table fences.
func open(t *testing.T) *accounts {
	t.Helper()
	db, err := openAccounts(filepath.Join(t.TempDir(), "fences.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.db.Close() })
	if _, err := db.db.ExecContext(t.Context(), "CREATE TABLE fences (name VARCHAR(255) PRIMARY KEY, token BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if err := db.create(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	return db
}

var fences = fence.Table{Name: "fences", Key: "name", Token: "token", Insert: true}

// A separate table fences a write of another table, and a refused transaction writes nothing.
func TestTable_SeparateTable(t *testing.T) {
	t.Parallel()
	db := open(t)
	write := func(token int64, euros int) error {
		return fences.Do(t.Context(), db.db, "account:42", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "UPDATE unfenced SET balance = ? WHERE id = 42", euros)
			return err
		})
	}
	for _, step := range []struct {
		token int64
		euros int
		want  error
		left  int
	}{{5, 90, nil, 90}, {5, 80, nil, 80}, {7, 70, nil, 70}, {6, 60, fence.ErrStale, 70}, {7, 50, nil, 50}} {
		err := write(step.token, step.euros)
		left, failed := balance(t.Context(), db.db, "unfenced")
		if !errors.Is(err, step.want) || left != step.left || failed != nil {
			t.Errorf("token %d: %v, and the balance is %d, %v", step.token, err, left, failed)
		}
	}
}

// Without Insert a missing row is an error.
func TestTable_MissingRow(t *testing.T) {
	t.Parallel()
	db := open(t)
	err := tokens.Do(t.Context(), db.db, 43, 1, func(*sql.Tx) error { t.Error("fn ran"); return nil })
	if !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("got %v", err)
	}
}

// Transactions that claim one row at the same time run one after the other, and no smaller token follows a larger one.
func TestTable_Concurrent(t *testing.T) {
	t.Parallel()
	db := open(t)
	var mu sync.Mutex
	var last int64
	claim := func(ctx context.Context, token int64) error {
		return fences.Do(ctx, db.db, "account:42", token, func(*sql.Tx) error {
			mu.Lock()
			defer mu.Unlock()
			if token < last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
			return nil
		})
	}
	var all sync.WaitGroup
	for token := range int64(20) {
		all.Go(func() {
			if err := claim(t.Context(), token+1); err != nil && !errors.Is(err, fence.ErrStale) {
				t.Errorf("token %d: %v", token+1, err)
			}
		})
	}
	all.Wait()
}
