package main

import (
	"context"
	"fmt"
	"strings"
)

// swapConfigMap replaces the file with the links of a mounted ConfigMap.
func swapConfigMap(ctx context.Context, d *demo) (string, error) {
	pay := post("/orders/%s/pay")
	d.out.linef("locks.yaml becomes a link to ..data/locks.yaml; the rules are the same")
	if err := d.reload(ctx, d.file.original+"# from a ConfigMap\n", byLink); err != nil {
		return "", err
	}
	before, err := d.collide(ctx, "1010", pay, pay)
	if err != nil {
		return "", err
	}
	d.out.linef("..data becomes a link to another folder")
	err = d.reloadWith(ctx, "    profile: counter\n", "    on_busy: fallback\n    fallback: shelf\n    wait_time: none\n", byLink)
	if err != nil {
		return "", err
	}
	after, err := d.collide(ctx, "1010", pay, pay)
	if err != nil {
		return "", err
	}
	answers := []string{before.second, after.second}
	d.out.linef("a second caller got %s", strings.Join(answers, ", then "))
	return strings.Join(answers, ", then "), want("the second callers got", fmt.Sprint(answers), "[409 202]")
}
