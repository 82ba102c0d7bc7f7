package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// The first form: take the lock, run, release.
func ExampleLock_Do() {
	locks, done := exampleLocks()
	defer done()
	ctx := context.Background()

	err := locks.Lock("order:42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("paying under the lock")
		return locks.Lock("order:42").Do(ctx, func(context.Context) error { // the same lock again: Do re-enters
			fmt.Println("and so is what it calls")
			return nil
		})
	}, core.WaitTime(3*time.Second), core.LeaseTime(10*time.Second))
	fmt.Println(err)
	// Output:
	// paying under the lock
	// and so is what it calls
	// <nil>
}

// Call is Do for a function that returns a value.
func ExampleCall() {
	locks, done := exampleLocks()
	defer done()
	charge := func(context.Context) (string, error) { return "receipt 7", nil }

	receipt, err := core.Call(context.Background(), locks.Lock("order:42"), charge, core.WaitTime(3*time.Second))
	fmt.Println(receipt, err)
	// Output:
	// receipt 7 <nil>
}

// If a function does not fit, Acquire returns a context that carries the lock, and a hold that releases it.
func ExampleLock_Acquire() {
	locks, done := exampleLocks()
	defer done()
	ctx := context.Background()

	locked, hold, err := locks.Lock("report").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = locks.Lock("report").Acquire(ctx, core.WaitTime(0)) // an attempt without the context of the hold
	fmt.Println("not acquired:", errors.Is(err, core.ErrNotAcquired))

	fmt.Println("released:", hold.Release(ctx))
	fmt.Println("the context says:", context.Cause(locked))
	// Output:
	// not acquired: true
	// released: <nil>
	// the context says: core: lock released
}

// exampleLocks returns a lock client on an embedded Redis.
func exampleLocks() (*core.Client, func()) {
	server, err := redistest.Start()
	if err != nil {
		panic(err)
	}
	locks, err := core.New(server.Client())
	if err != nil {
		panic(err)
	}
	return locks, func() {
		_ = locks.Close(context.Background()) // all holds have been released
		server.Close()
	}
}
