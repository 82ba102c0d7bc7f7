package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/redistest"
)

// A holder of a lock writes to PostgreSQL in a transaction. A holder that was paused for longer than its lease gets
// ErrStale, and its transaction is rolled back. The deadline ends the wait for a holder that is paused inside its
// transaction.
func ExampleTable_Do() { //nolint:testableexamples // it needs a database
	var (
		ctx   context.Context
		locks *core.Client
		db    *sql.DB
	)
	fences := &fence.Table{Name: "fences", Key: "name", Token: "token", Placeholder: "$", Insert: true}
	_ = func() error {
		return locks.Lock("account:42").Do(ctx, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			token := core.MustHold(ctx, "account:42").Token()
			return fences.Do(ctx, db, "account:42", token, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 42")
				return err
			})
		}, core.WithToken())
	}
}

// The first of two holders writes once more, after the second one.
func ExampleCommand() {
	srv, err := redistest.Start() // in production: your Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	rdb, ctx := srv.Client(), context.Background()
	locks, err := core.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locks.Close(ctx) }()

	var first int64
	for price := range 2 {
		err = locks.FencedLock("tea").Do(ctx, func(ctx context.Context) error {
			token := core.MustHold(ctx, "tea").Token()
			if first == 0 {
				first = token
			}
			return fence.Command(ctx, rdb, token, "HSET", "prices", "tea", price).Err()
		})
		fmt.Println(price, err)
	}
	err = fence.Command(ctx, rdb, first, "HSET", "prices", "tea", 0).Err()
	fmt.Println("late write refused:", errors.Is(err, fence.ErrStale), "and the price is", rdb.HGet(ctx, "prices", "tea").Val())
	// Output:
	// 0 <nil>
	// 1 <nil>
	// late write refused: true and the price is 1
}
