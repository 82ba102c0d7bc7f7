package redistest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/redistest"
)

// A demo without a Redis server. The URL works for every client and every process on this machine.
func ExampleStart() {
	srv, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	options, err := redis.ParseURL(srv.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	fmt.Println(rdb.Ping(context.Background()).Val())
	// Output: PONG
}

// A stranger holds a lock. Interlock and Redisson see a hash with the stranger's field.
func ExampleServer_Take() {
	srv, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	rdb, ctx := srv.Client(), context.Background()

	stranger := srv.Take("order:42", time.Minute)
	fmt.Println(rdb.HGet(ctx, "order:42", stranger).Val(), "hold")

	srv.Free("order:42")
	fmt.Println(rdb.Exists(ctx, "order:42").Val(), "keys")
	// Output:
	// 1 hold
	// 0 keys
}

// Redis executes the increment, but its reply is lost. go-redis does not know that and sends the increment
// again.
func ExampleServer_LoseNextReply() {
	srv, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	rdb := srv.Client()

	srv.LoseNextReply("INCR")
	fmt.Println(rdb.Incr(context.Background(), "n").Result())
	// Output: 2 <nil>
}

// Redis goes away and comes back with its data.
func ExampleServer_Down() {
	srv, err := redistest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	rdb := srv.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	ctx := context.Background()
	rdb.Set(ctx, "k", "kept", 0)

	srv.Down()
	fmt.Println("down:", rdb.Get(ctx, "k").Err() != nil)
	srv.Up()
	fmt.Println("up:", rdb.Get(ctx, "k").Val())
	// Output:
	// down: true
	// up: kept
}
