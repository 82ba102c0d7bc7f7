package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// rekey changes the key of a rule. The direct change is refused, because instances with
// the old file and with the new one would not exclude each other. Then rekey follows the
// steps of the message.
func rekey(ctx context.Context, d *demo) (string, error) {
	const old = "    profile: counter\n    key: \"order:#{path.order}\"\n"
	at := func(keys string) (string, error) { return d.file.with(old, "    profile: counter\n"+keys) }
	next, err := at("    key: \"payment:#{path.order}\"\n")
	if err != nil {
		return "", err
	}
	message, err := d.publishRefused(ctx, next)
	if err != nil {
		return "", err
	}
	d.out.linef("another key is refused:\n%s\n", message)
	both, err := at("    keys: [\"order:#{path.order}\", \"payment:#{path.order}\"]\n")
	if err != nil {
		return "", err
	}
	if err := d.reload(ctx, both, byRename); err != nil {
		return "", err
	}
	c, err := d.collide(ctx, "1012", post("/orders/%s/pay"), post("/orders/%s/pay"))
	if err != nil {
		return "", err
	}
	keys := fmt.Sprint(slices.Sorted(maps.Keys(c.locks)))
	d.out.linef("locks in Redis while a handler runs: %s", keys)
	return "refused, then " + keys, errors.Join(
		want("locks in Redis", keys, "[order:1012 payment:1012]"),
		want("the second caller got", c.second, "409"))
}
