package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	gin.SetMode(gin.ReleaseMode) // its router is asked only
	logging.Disable()            // what go-redis has to say of a Redis that is down is in the error
	ctx, stop := context.Background(), func() {}
	if asksRedis(os.Args[1:]) { // only these commands look at the context: the others end at once
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
	}
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
