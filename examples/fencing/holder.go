package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

// lease is the lease of the holder that is stopped.
const lease = 500 * time.Millisecond

// lateHolder acquires the lock, reads the balance, prints it, and writes when it gets a line of
// input.
func lateHolder(ctx context.Context, url, path string, in io.Reader, out io.Writer) (err error) {
	locks, err := core.Open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer func() { err = errors.Join(err, rdb.Close()) }()
	db, err := openAccounts(path)
	if err != nil {
		return err
	}
	held, hold, err := locks.FencedLock("account:42").Acquire(ctx, core.LeaseTime(lease))
	if err != nil {
		return err
	}
	euros, err := balance(ctx, db.db, "fenced")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, hold.Token())
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	// A check of the context finds the loss, even after a long stop. The code below stands for a
	// write that was already on its way.
	fmt.Fprintf(out, "lost: %t\n", errors.Is(held.Err(), context.Canceled) && errors.Is(context.Cause(held), core.ErrLost))
	fmt.Fprintf(out, "unfenced: %s\n", resultOf(db.write(ctx, euros-10)))
	fmt.Fprintf(out, "fenced: %s\n", resultOf(db.writeFenced(ctx, euros-10, hold.Token())))
	fmt.Fprintf(out, "redis: %s\n", resultOf(writeRedis(ctx, rdb, euros-10, hold.Token())))
	fmt.Fprintf(out, "release lost: %t\n", errors.Is(hold.Release(ctx), core.ErrLost))
	return nil
}
