package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
)

// Two accounts are locked together or not at all, whatever the order of their names.
func ExampleClient_MultiLock() {
	locks, done := exampleLocks()
	defer done()

	err := locks.MultiLock("account:7", "account:3").Do(context.Background(), func(context.Context) error {
		fmt.Println("account:3 is free:", isFree(locks, "account:3"))
		fmt.Println("account:7 is free:", isFree(locks, "account:7"))
		return nil
	}, core.WaitTime(3*time.Second))
	fmt.Println(err)
	// Output:
	// account:3 is free: false
	// account:7 is free: false
	// <nil>
}

// State returns the holders of a lock in Redis, in any process and language.
func ExampleLock_State() {
	locks, done := exampleLocks()
	defer done()
	order := locks.Lock("order:42")

	err := order.Do(context.Background(), func(ctx context.Context) error {
		state, err := order.State(ctx)
		for holder, count := range state.Holders {
			mine, _ := core.Held(ctx, "order:42")
			fmt.Println(state.Key, "is held by me:", holder == mine.Field(), "- times:", count)
		}
		fmt.Println("it ends by itself, unless it is renewed:", 0 < state.TTL && state.TTL <= core.DefaultWatchdog)
		return err
	})
	fmt.Println(err)
	state, err := order.State(context.Background())
	fmt.Println("holders:", len(state.Holders), err)
	// Output:
	// order:42 is held by me: true - times: 1
	// it ends by itself, unless it is renewed: true
	// <nil>
	// holders: 0 <nil>
}

// An operator frees a lock whose holder hangs. The context of the holder ends: at once in this process, and at the
// next renewal in another process.
func ExampleLock_ForceRelease() {
	locks, done := exampleLocks()
	defer done()

	ctx, hold, err := locks.Lock("close-day").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	was, err := locks.Lock("close-day").ForceRelease(context.Background())
	fmt.Println("it was held:", was, err)
	<-ctx.Done()
	fmt.Println("lost:", errors.Is(context.Cause(ctx), core.ErrLost), errors.Is(hold.Release(ctx), core.ErrLost))
	// Output:
	// it was held: true <nil>
	// lost: true true
}

// Holds lists the locks of this client, for a page or for a log at shutdown.
func ExampleClient_Holds() {
	locks, done := exampleLocks()
	defer done()

	err := locks.Lock("order:42").Do(context.Background(), func(context.Context) error {
		for _, h := range locks.Holds() {
			fmt.Println(h.Label, h.Key, h.Kind, "renewed:", h.Watchdog, h.Lease)
		}
		return nil
	}, core.Label("pay"))
	fmt.Println(len(locks.Holds()), err)
	// Output:
	// pay order:42 reentrant renewed: true 30s
	// 0 <nil>
}

// Stats returns numbers for gauges.
func ExampleClient_Stats() {
	locks, done := exampleLocks()
	defer done()

	err := locks.Lock("order:42").Do(context.Background(), func(context.Context) error {
		stats := locks.Stats()
		fmt.Println("held:", stats.Holds, "waiting:", stats.Waiters, "since:", stats.OldestHold > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// held: 1 waiting: 0 since: true
	// <nil>
}
