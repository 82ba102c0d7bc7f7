package main

import (
	"context"
	"fmt"
	"strings"
)

// showHeld prints the lock while an instance counts the cups.
func showHeld(ctx context.Context, d *demo) (string, error) {
	const work = "/items/cup/count?for=1s"
	shop := d.gin[0]
	d.curl(shop, work)
	count := inBackground(func() (*httpAnswer, error) { return shop.post(ctx, work, nil) })
	state, err := d.await(ctx, "cup", count.done, isHeld)
	if err != nil {
		return "", err
	}
	d.print(state)
	field, holds, err := state.holder()
	if err != nil {
		return "", err
	}
	d.out.linef("the holder is <client id>:<n>, like Redisson's; the value counts its holds")
	if !strings.HasPrefix(field, shop.locks.ID()+":") || holds != "1" {
		return "", fmt.Errorf("holder %s with count %s, want a holder of client %s with count 1", field, holds, shop.locks.ID())
	}
	_, err = count.wait()
	return "1 holder, count " + holds, err
}
