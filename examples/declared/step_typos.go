package main

import (
	"context"
	"errors"
	"fmt"
)

func reloadMistakes() []mistake {
	mistakes := startupMistakes()
	return []mistake{
		mistakes[0], mistakes[2],
		{"a field of a rule", "wait_time: 600ms", "wait_tme: 900ms", "wait_time"},
		{"a route", "POST /orders/:order/invoice", "POST /orders/:order/invioce", "POST /orders/:order/invoice"},
	}
}

// reloadTypos publishes files with mistakes, which do not change the rules.
func reloadTypos(ctx context.Context, d *demo) (string, error) {
	var wrong []error
	refused := 0
	for _, m := range reloadMistakes() {
		text, err := d.file.with(m.old, m.replacement)
		if err != nil {
			return "", err
		}
		message, err := d.publishRefused(ctx, text)
		if err != nil {
			return "", fmt.Errorf("a typo in %s: %w", m.what, err)
		}
		d.out.linef("a typo in %s:\n%s\n", m.what, message)
		if err := m.check(message); err != nil {
			wrong = append(wrong, err)
			continue
		}
		refused++
	}
	c, err := d.collide(ctx, "1011", post("/orders/%s/pay"), post("/orders/%s/pay"))
	if err != nil {
		return "", err
	}
	d.out.linef("a second caller still gets %s after %s", c.second, milliseconds(c.waited))
	wrong = append(wrong, want("the second caller got", c.second, "409"))
	return fmt.Sprintf("%d refused, old rules in force", refused), errors.Join(wrong...)
}
