package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// database is a database with one row of a [fence.Table]: a driver that accepts the statements of Table, and NOTE, which
// writes a number. The tests in examples/fencing run Table on SQLite.
type database struct {
	DB     *sql.DB
	fences fence.Table

	mu sync.Mutex
	state
	unfound bool                   // counts changed rows, not found ones, like MySQL without clientFoundRows
	said    []string               // statements
	during  func(statement string) // called for each statement, if it is not nil
	locked  bool                   // a transaction that does not end has the row
}

// state is the content of a database.
type state struct {
	row   int64 // token of the row; 0 before the row exists
	noted int64 // the last NOTE
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	d := &database{fences: fence.Table{Name: "fences", Key: "name", Token: "token", Insert: true}}
	d.DB = sql.OpenDB(d)
	t.Cleanup(func() { locktest.WantOK(t, d.DB.Close()) })
	return d
}

// note writes a number.
func note(tx *sql.Tx, n int64) error {
	_, err := tx.Exec("NOTE", n)
	return err
}

// inTx runs fn in a transaction, commits it, and forgets that it began and ended.
func (d *database) inTx(t *testing.T, fn func(tx *sql.Tx) error) error {
	t.Helper()
	tx, err := d.DB.BeginTx(t.Context(), nil)
	locktest.Must(t, err)
	d.statements()
	err = fn(tx)
	said := d.statements()
	locktest.Must(t, tx.Commit())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = said
	return err
}

// statements returns the statements since its last call.
func (d *database) statements() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := d.said
	d.said = nil
	return said
}

// now returns the content.
func (d *database) now() state {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (d *database) Connect(context.Context) (driver.Conn, error) { return &conn{database: d}, nil }
func (*database) Driver() driver.Driver                          { return nil }

// conn is a connection with one transaction at a time.
type conn struct {
	*database

	before state // the transaction
}

func (*conn) Prepare(string) (driver.Stmt, error) { return nil, errUnknown }
func (*conn) Close() error                        { return nil }

func (c *conn) Begin() (driver.Tx, error) {
	c.say("BEGIN", func() { c.before = c.state })
	return c, nil
}

func (c *conn) Commit() error {
	c.say("COMMIT", func() {})
	return nil
}

func (c *conn) Rollback() error {
	c.say("ROLLBACK", func() { c.state = c.before })
	return nil
}

// say records a statement and executes it.
func (c *conn) say(statement string, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, statement)
	do()
	if c.during != nil {
		c.during(statement)
	}
}

// errUnknown is the error of a statement that the driver does not know.
var errUnknown = errors.New("unknown statement")

// numbered matches the parameters of other dialects.
var numbered = regexp.MustCompile(`(\$|@p|:)\d`)

func (c *conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (result driver.Result, err error) {
	if c.locked && statement != "NOTE" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.say(statement, func() {
		token := func(i int) int64 { return args[i].Value.(int64) }
		switch numbered.ReplaceAllString(statement, "?") {
		case "UPDATE fences SET token = ? WHERE name = ? AND token <= ?":
			if c.row == 0 || c.row > token(2) || c.unfound && c.row == token(0) {
				result = driver.RowsAffected(0)
				return
			}
			c.row = token(0)
		case "INSERT INTO fences (name, token) VALUES (?, ?)":
			c.row = token(1)
		case "NOTE":
			c.noted = token(0)
		default:
			err = fmt.Errorf("%w: %s", errUnknown, statement)
		}
		result = driver.RowsAffected(1)
	})
	return result, err
}

func (c *conn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (rows driver.Rows, err error) {
	c.say(query, func() {
		if numbered.ReplaceAllString(query, "?") != "SELECT token FROM fences WHERE name = ?" {
			err = fmt.Errorf("%w: %s", errUnknown, query)
		}
		rows = &one{c.row}
	})
	return rows, err
}

// one is a result of one token, or of none if it is 0.
type one struct{ token int64 }

func (*one) Columns() []string { return []string{"token"} }
func (*one) Close() error      { return nil }

func (o *one) Next(to []driver.Value) error {
	if o.token == 0 {
		return io.EOF
	}
	to[0], o.token = o.token, 0
	return nil
}
