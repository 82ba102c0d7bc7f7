package main

import (
	"context"
	"fmt"
)

// items returns the items of the steps.
func items() []string {
	return []string{"teapot", "cup", "saucer", "kettle", "spoon", "bowl", "jug", "plate", "spatula"}
}

// showLeft checks that the locks of all steps left no data in Redis.
func showLeft(ctx context.Context, d *demo) (string, error) {
	keys := make([]string, 0, len(items()))
	for _, item := range items() {
		keys = append(keys, d.lockKey(item))
	}
	d.out.commandf("redis-cli EXISTS %s … (%d keys)", keys[0], len(keys))
	left, err := d.redis.Exists(ctx, keys...).Result()
	if err != nil {
		return "", err
	}
	d.out.linef("(integer) %d", left)
	if left != 0 {
		err = fmt.Errorf("%d locks were not released", left)
	}
	return fmt.Sprintf("%d keys", left), err
}
