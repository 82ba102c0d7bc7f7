package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // what go-redis has to say of a Redis that is down is in the error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
