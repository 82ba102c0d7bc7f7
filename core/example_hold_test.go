package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
)

// isFree reports whether another caller can get the lock now.
func isFree(locks *core.Client, name string) bool {
	_, hold, err := locks.Lock(name).Acquire(context.Background(), core.WaitTime(0))
	if err != nil {
		return false
	}
	return hold.Release(context.Background()) == nil
}

// The answer is sent, and the work goes on under its lock in another goroutine.
func ExampleHold_Handover() {
	locks, done := exampleLocks()
	defer done()
	request, answered := context.WithCancel(context.Background())
	defer answered()

	_, hold, err := locks.Lock("report").Acquire(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, moved := hold.Handover() // from here on, release moved
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer func() { _ = moved.Release(ctx) }()
		<-request.Done()
		fmt.Println("the request has ended, the report goes on:", ctx.Err())
		fmt.Println("the lock is free:", isFree(locks, "report"))
	}()
	fmt.Println("the old hold:", errors.Is(hold.Release(request), core.ErrNotHeld))
	answered()
	<-finished
	fmt.Println("the lock is free:", isFree(locks, "report"))
	// Output:
	// the old hold: true
	// the request has ended, the report goes on: <nil>
	// the lock is free: false
	// the lock is free: true
}

// Work that takes longer than expected extends its lease before it goes on.
func ExampleHold_Refresh() {
	locks, done := exampleLocks()
	defer done()

	ctx, hold, err := locks.Lock("import").Acquire(context.Background(), core.LeaseTime(10*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hold.Release(ctx) }()
	fmt.Println("at most 10 minutes:", hold.Remaining() <= 10*time.Minute)
	if err := hold.Refresh(ctx, time.Hour); err != nil {
		return // the lease keeps its old end: stop in time
	}
	fmt.Println("nearly an hour:", hold.Remaining() > 50*time.Minute)
	// Output:
	// at most 10 minutes: true
	// nearly an hour: true
}

// A quiet time after the work: the lock stays for five minutes without a holder.
func ExampleHold_Leave() {
	locks, done := exampleLocks()
	defer done()

	ctx, hold, err := locks.Lock("mail:42").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	// … send the mail …
	fmt.Println("left:", hold.Leave(ctx, 5*time.Minute))
	fmt.Println("the context says:", context.Cause(ctx))
	fmt.Println("another mail may be sent:", isFree(locks, "mail:42"))
	// Output:
	// left: <nil>
	// the context says: core: lock released
	// another mail may be sent: false
}

// An early release ends the context that carries the lock. Later work goes on with the context from before, or with a
// detached context, which has the same values.
func ExampleDetach() {
	locks, done := exampleLocks()
	defer done()
	type user struct{}
	parent := context.WithValue(context.Background(), user{}, "ada")

	ctx, hold, err := locks.Lock("order:42").Acquire(parent)
	if err != nil {
		fmt.Println(err)
		return
	}
	// … work that needs the lock …
	if err := hold.Release(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("with the lock:", ctx.Err(), "-", context.Cause(ctx))
	fmt.Println("parent:", parent.Err())
	after := core.Detach(ctx) // for work that outlives the request, too
	fmt.Println("detached:", after.Err(), after.Value(user{}))
	// Output:
	// with the lock: context canceled - core: lock released
	// parent: <nil>
	// detached: <nil> ada
}
