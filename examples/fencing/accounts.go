package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the engine
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

func (a *accounts) balance(ctx context.Context, table string) (balance int, err error) {
	err = a.db.QueryRowContext(ctx, fmt.Sprintf("SELECT balance FROM %s WHERE id = 42", table)).Scan(&balance)
	return balance, err
}

// errLate means that a holder with a larger token already wrote.
var errLate = errors.New("refused: a later holder has written")

// writeFenced writes unless a holder with a larger token already wrote. This condition is all
// that fencing needs. Equal tokens pass, because the same holder may write again.
func (a *accounts) writeFenced(ctx context.Context, balance int, token int64) error {
	result, err := a.db.ExecContext(ctx,
		"UPDATE fenced SET balance = ?, token = ? WHERE id = 42 AND token <= ?", balance, token, token)
	if err != nil {
		return err
	}
	switch rows, err := result.RowsAffected(); {
	case err != nil:
		return err
	case rows == 0:
		return errLate
	default:
		return nil
	}
}

// write writes without a condition: it trusts the lock.
func (a *accounts) write(ctx context.Context, balance int) error {
	_, err := a.db.ExecContext(ctx, "UPDATE unfenced SET balance = ? WHERE id = 42", balance)
	return err
}

// pay subtracts an amount in both tables, as the holder of the lock with the token.
func (a *accounts) pay(ctx context.Context, amount int, token int64) error {
	fenced, err := a.balance(ctx, "fenced")
	if err != nil {
		return err
	}
	unfenced, err := a.balance(ctx, "unfenced")
	if err != nil {
		return err
	}
	return errors.Join(a.writeFenced(ctx, fenced-amount, token), a.write(ctx, unfenced-amount))
}
