package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the engine

	"github.com/interlock-go/interlock/core/fence"
)

// accounts is a database with one account in two tables. One table compares fencing tokens, the
// other does not.
type accounts struct{ db *sql.DB }

func openAccounts(path string) (*accounts, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	return &accounts{db}, err
}

// create creates the tables. A token needs 64 bits.
func (a *accounts) create(ctx context.Context, balance int) error {
	for _, table := range []string{"fenced", "unfenced"} {
		_, err := a.db.ExecContext(ctx, fmt.Sprintf(
			"CREATE TABLE %s (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, token BIGINT NOT NULL DEFAULT 0)", table))
		if err != nil {
			return err
		}
		if _, err := a.db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id, balance) VALUES (42, ?)", table), balance); err != nil {
			return err
		}
	}
	return nil
}

// query is a database or a transaction.
type query interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// balance reads the balance in a table.
func balance(ctx context.Context, q query, table string) (euros int, err error) {
	err = q.QueryRowContext(ctx, fmt.Sprintf("SELECT balance FROM %s WHERE id = 42", table)).Scan(&euros)
	return euros, err
}

// tokens remembers the token of each account.
var tokens = fence.Table{Name: "fenced", Key: "id", Token: "token"}

// writeFenced writes unless a holder with a larger token already wrote.
func (a *accounts) writeFenced(ctx context.Context, euros int, token int64) error {
	return tokens.Do(ctx, a.db, 42, token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE fenced SET balance = ? WHERE id = 42", euros)
		return err
	})
}

// write writes without a condition: it trusts the lock.
func (a *accounts) write(ctx context.Context, euros int) error {
	_, err := a.db.ExecContext(ctx, "UPDATE unfenced SET balance = ? WHERE id = 42", euros)
	return err
}

// payFenced subtracts an amount as the holder of the lock with the token. It reads after the claim, so no earlier holder
// writes between the read and the write.
func (a *accounts) payFenced(ctx context.Context, amount int, token int64) error {
	return tokens.Do(ctx, a.db, 42, token, func(tx *sql.Tx) error {
		euros, err := balance(ctx, tx, "fenced")
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE fenced SET balance = ? WHERE id = 42", euros-amount)
		return err
	})
}

// pay subtracts an amount. It trusts the lock.
func (a *accounts) pay(ctx context.Context, amount int) error {
	euros, err := balance(ctx, a.db, "unfenced")
	if err != nil {
		return err
	}
	return a.write(ctx, euros-amount)
}

// balanceKey is the key of the balance in Redis. The key of the lock is another one.
const balanceKey = "balance:42"

// writeRedis writes the balance to Redis, which compares the token.
func writeRedis(ctx context.Context, rdb *redis.Client, euros int, token int64) error {
	return fence.Command(ctx, rdb, token, "HSET", balanceKey, "euros", euros).Err()
}

// resultOf describes the error of a write.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "written"
	case errors.Is(err, fence.ErrStale):
		return "refused"
	default:
		return err.Error()
	}
}
