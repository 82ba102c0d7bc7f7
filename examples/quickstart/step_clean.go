package main

import (
	"context"
	"fmt"
)

// items are the items of the steps.
func items() []string {
	return []string{"teapot", "cup", "saucer", "kettle", "spoon", "bowl", "jug", "plate", "spatula"}
}

// showLeft looks for the locks of all steps: a released lock leaves no data.
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
