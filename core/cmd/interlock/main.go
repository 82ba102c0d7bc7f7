package main

import (
	"context"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	gin.SetMode(gin.ReleaseMode) // its router is asked only
	logging.Disable()            // the error says what go-redis would log of a Redis that is down
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
