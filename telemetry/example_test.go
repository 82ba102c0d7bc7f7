package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry"
)

// The program sets OpenTelemetry's global providers elsewhere.
func ExampleNew() {
	srv, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	tel, err := telemetry.New(telemetry.WithLogger(slog.Default()))
	if err != nil {
		fmt.Println(err)
		return
	}
	locks, err := core.New(srv.Client(), core.WithObserver(tel.Observer()))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background() // the context of the request, with its span
	err = locks.Lock("order:42").Do(ctx, func(context.Context) error {
		fmt.Println("paid")
		return nil
	}, core.Label("pay-order"))
	fmt.Println(err, locks.Close(ctx))
	// Output:
	// paid
	// <nil> <nil>
}

// A shell computes the same hash with: printf %s 'shop:order:42' | sha256sum | cut -c1-16.
func ExampleKeyHash() {
	fmt.Println(core.KeyHash("shop:order:42"))
	// Output: 23897f4f5dca59d6
}
