package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// saveFile changes the wait time and the strategy of the route for paying.
func saveFile(ctx context.Context, d *demo) (string, error) {
	pay := post("/orders/%s/pay")
	before, err := d.collide(ctx, "1009", pay, pay)
	if err != nil {
		return "", err
	}
	d.out.linef("a second caller gets %s after %s", before.second, milliseconds(before.waited))
	err = d.reloadWith(ctx, "    profile: counter\n", "    profile: counter\n    wait_time: 1500ms\n    on_busy: skip\n", byRename)
	if err != nil {
		return "", err
	}
	after, err := d.collide(ctx, "1009", pay, pay)
	if err != nil {
		return "", err
	}
	d.out.linef("a second caller gets %s after %s", after.second, milliseconds(after.waited))
	if after.waited < 1500*time.Millisecond {
		err = fmt.Errorf("the second caller waited for %s, want 1500ms", after.waited)
	}
	seen := fmt.Sprintf("%s, then %s after %s", before.second, after.second, milliseconds(after.waited))
	return seen, errors.Join(err,
		want("before", before.second, "409"), want("afterwards", after.second, "204 skipped"))
}
