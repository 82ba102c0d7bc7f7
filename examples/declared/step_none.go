package main

import (
	"context"
	"errors"
	"fmt"
)

// leaveOut calls two routes of one wildcard while their handlers run. One of them has no
// lock.
func leaveOut(ctx context.Context, d *demo) (string, error) {
	var answers [2]string
	for i, path := range []string{"/admin/reindex", "/admin/login"} {
		err := d.whileTaken(ctx, "admin:"+path, func() (err error) {
			answers[i], err = post(path)(ctx, d.client, "")
			return err
		})
		if err != nil {
			return "", err
		}
		d.out.linef("POST %s: %s", path, answers[i])
	}
	c, err := d.collide(ctx, "/admin/login", post("/admin/login"), post("/admin/login"))
	if err != nil {
		return "", err
	}
	d.out.linef("POST /admin/login, while its handler runs: %d locks in Redis, a second caller gets %s", len(c.locks), c.second)
	seen := fmt.Sprintf("%s, and %s with %d locks", answers[0], answers[1], len(c.locks))
	return seen, errors.Join(
		want("under the wildcard", answers[0], "423"),
		want("with none: true", answers[1], "200"),
		want("locks of it", fmt.Sprint(len(c.locks)), "0"),
		want("to its second caller", c.second, "200"))
}
