package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestTable_Do(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const update, read = "UPDATE fences SET token = ? WHERE name = ? AND token <= ?", "SELECT token FROM fences WHERE name = ?"
	for _, step := range []struct {
		token int64
		want  error
		said  []string
		after state
	}{
		{5, nil, []string{"BEGIN", update, read, "INSERT INTO fences (name, token) VALUES (?, ?)", "NOTE", "COMMIT"}, state{5, 5}},
		{5, nil, []string{"BEGIN", update, "NOTE", "COMMIT"}, state{5, 5}}, // the same token passes again
		{7, nil, []string{"BEGIN", update, "NOTE", "COMMIT"}, state{7, 7}},
		{6, fence.ErrStale, []string{"BEGIN", update, read, "ROLLBACK"}, state{7, 7}},
	} {
		err := d.fences.Do(t.Context(), d.DB, "a", step.token, func(tx *sql.Tx) error { return note(tx, step.token) })
		if said := d.statements(); !errors.Is(err, step.want) || !reflect.DeepEqual(said, step.said) || d.now() != step.after {
			t.Errorf("token %d: %v, %q, %+v; want %v, %q, %+v", step.token, err, said, d.now(), step.want, step.said, step.after)
		}
		if err != nil && !strings.HasSuffix(err.Error(), "its token is 7, and this one is 6") {
			t.Error(err)
		}
	}
}

// Whenever fn does not return nil, or the hold is lost before the commit, neither the token nor a write of fn remains.
func TestTable_Do_RollsBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		end  func(lose func()) error // of fn
		want error
	}{
		"error":  {func(func()) error { return broken }, broken},
		"panic":  {func(func()) error { panic(broken) }, nil},
		"goexit": {func(func()) error { runtime.Goexit(); return nil }, nil},
		"loss":   {func(lose func()) error { lose(); return nil }, core.ErrLost},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			d := newDatabase(t)
			locktest.Must(t, d.fences.Do(t.Context(), d.DB, "a", 5, func(tx *sql.Tx) error { return note(tx, 5) }))
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				lose := func() { end(core.ErrLost) }
				err = d.fences.Do(ctx, d.DB, "a", 7, func(tx *sql.Tx) error { return errors.Join(note(tx, 7), test.end(lose)) })
			}()
			<-done
			locktest.Must(t, d.DB.Close()) // waits for a rollback that the end of ctx has started
			if !errors.Is(err, test.want) || d.now() != (state{5, 5}) {
				t.Errorf("%v, %+v", err, d.now())
			}
		})
	}
}

// An earlier holder is stopped inside its transaction. The deadline of the context ends the wait of the next holder.
func TestTable_Do_StoppedTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(t)
		locktest.Must(t, d.fences.Do(t.Context(), d.DB, "a", 5, func(tx *sql.Tx) error { return note(tx, 5) }))
		d.locked = true
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := d.fences.Do(ctx, d.DB, "a", 7, func(*sql.Tx) error { t.Error("fn ran"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v", err)
		}
		locktest.Must(t, d.DB.Close()) // waits for the rollback
		locktest.WantSame(t, "the state", d.now(), state{5, 5})
	})
}

// The error says that the lock was lost, whenever that happened. database/sql only returns context.Canceled.
func TestTable_Do_Lost(t *testing.T) {
	t.Parallel()
	for _, during := range []string{"", "BEGIN", "UPDATE", "SELECT", "INSERT", "NOTE"} {
		locktest.Parallel(t, "during "+during, func(t *testing.T) {
			d := newDatabase(t)
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if during == "" {
				end(core.ErrLost)
			}
			d.during = func(statement string) {
				if strings.HasPrefix(statement, during) {
					end(core.ErrLost)
				}
			}
			err := d.fences.Do(ctx, d.DB, "a", 5, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "NOTE", 5)
				return err
			})
			locktest.Must(t, d.DB.Close()) // waits for a rollback that the end of ctx has started
			if !errors.Is(err, core.ErrLost) || d.now() != (state{}) {
				t.Errorf("%v, %+v", err, d.now())
			}
		})
	}
}

func TestTable_Claim_Refused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(d *database)
		want   error
		words  string
	}{
		"missing row":      {func(d *database) { d.fences.Insert = false }, sql.ErrNoRows, "fence: table fences, name a: "},
		"unchanged row":    {func(d *database) { d.unfound, d.row = true, 6 }, nil, "clientFoundRows=true"},
		"unknown table":    {func(d *database) { d.fences.Name = "unknown" }, errUnknown, "fence: table unknown, name a: "},
		"failing commands": {func(d *database) { d.fences.Token = "unknown" }, errUnknown, "fence: table fences, name a: "},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			d := newDatabase(t)
			test.change(d)
			before := d.now()
			err := d.fences.Do(t.Context(), d.DB, "a", 6, func(*sql.Tx) error { t.Error("fn ran"); return nil })
			if err == nil || test.want != nil && !errors.Is(err, test.want) || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v", err)
			}
			locktest.WantSame(t, "the state", d.now(), before)
		})
	}
}

// The parameters of each statement, in the dialects of databases.
func TestTable_Placeholders(t *testing.T) {
	t.Parallel()
	for begin, said := range map[string][]string{
		"$":  {"UPDATE fences SET token = $1 WHERE name = $2 AND token <= $3", "SELECT token FROM fences WHERE name = $1", "INSERT INTO fences (name, token) VALUES ($1, $2)"},
		"@p": {"UPDATE fences SET token = @p1 WHERE name = @p2 AND token <= @p3", "SELECT token FROM fences WHERE name = @p1", "INSERT INTO fences (name, token) VALUES (@p1, @p2)"},
		":":  {"UPDATE fences SET token = :1 WHERE name = :2 AND token <= :3", "SELECT token FROM fences WHERE name = :1", "INSERT INTO fences (name, token) VALUES (:1, :2)"},
	} {
		d := newDatabase(t)
		d.fences.Placeholder = begin
		locktest.WantOK(t, d.inTx(t, func(tx *sql.Tx) error { return d.fences.Claim(t.Context(), tx, "a", 5) }))
		if got := d.statements(); !reflect.DeepEqual(got, said) {
			t.Errorf("got %q, want %q", got, said)
		}
		locktest.WantSame(t, "the token", d.now().row, 5)
	}
}
