package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// Table is a table in which each row remembers the largest token that has claimed it. It is either a table of your data
// with a column for the token, or a separate table with a row for each lock:
//
//	CREATE TABLE fences (name VARCHAR(255) PRIMARY KEY, token BIGINT NOT NULL)
//
// The column of the token needs 64 bits and NOT NULL, because a comparison with NULL is never true. Table writes its
// names into the statements as they are, so they must be constants of the program. The statements are standard SQL. They
// are tested with SQLite.
//
// For MySQL the DSN needs clientFoundRows=true. Without it MySQL does not count a row that it has found but not changed, so
// a second claim with the same token is an error.
type Table struct {
	Name  string // of the table
	Key   string // column that is unique, such as the primary key
	Token string // column of the token

	// Placeholder is the beginning of a parameter, before its number: "$" for PostgreSQL, "@p" for SQL Server, ":" for
	// Oracle. If it is empty, each parameter is a "?", for MySQL and SQLite.
	Placeholder string

	// Insert adds a row that is missing. If two transactions add the same row at the same time, the database refuses one
	// of them with an error of its driver: begin the transaction again. Without Insert a missing row is [sql.ErrNoRows].
	// Leave it false for a table with other columns that have no default.
	Insert bool
}

// Do runs fn in a transaction that first claims the row with this key: see [Table.Claim]. It commits the transaction if fn
// returns nil. If fn returns an error or panics, or if ctx ends before the commit, the transaction is rolled back. So pass
// a context that is derived from the context of the hold, which ends when the lock is lost, and give it a deadline, because
// Do itself has no limit. Do returns the error of Claim, of fn or of the database. If ctx has ended by then, the error also
// matches the cause of ctx, such as core.ErrLost.
//
// An earlier holder may be stopped inside its transaction. The database keeps the row locked for it, and Claim of the next
// holder waits, while the watchdog renews the lock of that holder. Without a deadline it waits until the stopped process
// goes on or its connection ends. Limits of the database help as well: of the waiting statement (lock_timeout of PostgreSQL,
// innodb_lock_wait_timeout of MySQL, SET LOCK_TIMEOUT of SQL Server, busy_timeout of SQLite), and of the stopped transaction
// (idle_in_transaction_session_timeout of PostgreSQL, after which the next Claim passes).
func (t *Table) Do(ctx context.Context, db *sql.DB, key any, token int64, fn func(tx *sql.Tx) error) error {
	if err := checkToken(token); err != nil {
		return err
	}
	err := t.do(ctx, db, key, token, fn)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err) // err may only say that the transaction has ended
	}
	return err
}

func (t *Table) do(ctx context.Context, db *sql.DB, key any, token int64, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing; if it fails, the database rolls back when the connection ends
	if err := t.Claim(ctx, tx, key, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// Claim writes the token to the row with this key. If the row has a larger token, the error is [ErrStale]. Roll the
// transaction back after any error.
//
// Call Claim before the transaction reads; the package comment has the reason. Give ctx a deadline, because Claim waits for
// another transaction that has the row; see [Table.Do]. The database keeps the row locked until the
// transaction ends, so everything that the transaction reads and writes after Claim is fenced, in all tables. At isolation
// levels above READ COMMITTED the database may also report a conflict with another transaction: begin the transaction again.
func (t *Table) Claim(ctx context.Context, tx *sql.Tx, key any, token int64) error {
	if err := checkToken(token); err != nil {
		return err
	}
	err := t.claim(ctx, tx, key, token)
	if err != nil && !errors.Is(err, ErrStale) {
		return fmt.Errorf("fence: table %s, %s %v: %w", t.Name, t.Key, key, err)
	}
	return err
}

//nolint:gosec // the names are constants of the program: see Table
func (t *Table) claim(ctx context.Context, tx *sql.Tx, key any, token int64) error {
	update := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s = %s AND %s <= %s",
		t.Name, t.Token, t.parameter(1), t.Key, t.parameter(2), t.Token, t.parameter(3))
	result, err := tx.ExecContext(ctx, update, token, key, token)
	if err != nil {
		return err
	}
	if rows, err := result.RowsAffected(); err != nil || rows > 0 {
		return err
	}
	// From here on only a new row passes, because the SELECT may read an older token than the UPDATE.
	var latest int64
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s = %s", t.Token, t.Name, t.Key, t.parameter(1))
	err = tx.QueryRowContext(ctx, query, key).Scan(&latest)
	switch {
	case errors.Is(err, sql.ErrNoRows) && t.Insert:
		insert := fmt.Sprintf("INSERT INTO %s (%s, %s) VALUES (%s, %s)", t.Name, t.Key, t.Token, t.parameter(1), t.parameter(2))
		_, err = tx.ExecContext(ctx, insert, key, token)
		return err
	case err != nil:
		return err
	case latest > token:
		return fmt.Errorf("%w: its token is %d, and this one is %d", ErrStale, latest, token)
	default:
		return fmt.Errorf("no row was changed, although its token %d is not larger than %d: "+
			"claim before the transaction reads, and for MySQL write clientFoundRows=true into the DSN", latest, token)
	}
}

// parameter returns the n-th parameter of a statement.
func (t *Table) parameter(n int) string {
	if t.Placeholder == "" {
		return "?"
	}
	return t.Placeholder + strconv.Itoa(n)
}
