// Tracing shows locks in one trace across two services:
//
//	go -C examples run ./tracing
//
// The stock service (gRPC) counts the spoons under the lock of the spoons. During the count, two
// customers order a spoon in the shop (Gin), which is another service with a separate lock client. The
// first order waits for the stock service, and the second waits for the first. Under its lock, each
// order calls the stock service, which acquires another lock. The program prints the trace as a tree or,
// with -otlp or OTEL_EXPORTER_OTLP_ENDPOINT, sends it there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/gin-gonic/gin"
)

func main() {
	redis := flag.String("redis", "", "redis://[user:password@]host:port/db of a Redis to use (default: an embedded one)")
	otlp := flag.String("otlp", os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://host:port to send the trace to by OTLP over gRPC (default: print it)")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout, *redis, *otlp); err != nil {
		fmt.Fprintln(os.Stderr, err)
		defer os.Exit(1)
	}
}
