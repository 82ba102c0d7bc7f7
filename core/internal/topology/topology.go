// Package topology asks a Redis server which role it plays among others. Packages redisstore, core
// and the command line call it.
package topology

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// InCluster reports whether a server says that it belongs to a Cluster. It returns false if the server does
// not know HELLO.
func InCluster(ctx context.Context, node *redis.Client) bool { return Mode(ctx, node) == "cluster" }

// Mode returns the mode that the server reports in HELLO: "standalone", "sentinel" or "cluster". It returns
// nil if the server reports none.
func Mode(ctx context.Context, node *redis.Client) any {
	reply, err := node.Do(ctx, "hello").Result()
	if err != nil {
		return nil
	}
	switch v := reply.(type) {
	case map[any]any: // RESP3
		return v["mode"]
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			if v[i] == "mode" {
				return v[i+1]
			}
		}
	}
	return nil
}
