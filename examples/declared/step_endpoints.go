package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// endpoint is an endpoint for which locks.yaml or orders.proto declares a lock.
type endpoint struct {
	label    string
	subject  string
	call     call
	keys     []string // the rule's key
	answer   string   // the answer to the first caller
	answered string   // the answer to the second caller, by the strategy of the rule
}

func declaredEndpoints() []endpoint {
	const remind = "/orders/%s/remind?channel=mail"
	return []endpoint{
		{"POST /orders/:order/pay", "1001", post("/orders/%s/pay"), []string{"order:1001"}, "200", "409"},
		{"POST /orders/:order/pack", "1002", post("/orders/%s/pack"), []string{"order:1002"}, "200", "202"},
		{"POST /orders/:order/remind", "1003", post(remind), []string{"reminder:1003:mail"}, "200", "204 skipped"},
		{"POST /orders/:order/invoice", "1004", post("/orders/%s/invoice"), []string{"invoice:1004"}, "200", "200 null"},
		{"POST /admin/*", "/admin/reindex", post("%s"), []string{"admin:/admin/reindex"}, "200", "423"},
		{"rpc Pay", "1005", payRPC, []string{"order:1005"}, "OK", "ABORTED"},
		{"rpc Ship", "1006", shipRPC, []string{"carrier:NO", "order:1006"}, "OK", "OK skipped"},
		{"rpc Follow (stream)", "1007", followRPC, []string{"screen:1007"}, "OK", "ABORTED"},
		{"func close-day", "oslo", closeDay, []string{"close-day:oslo"}, "closed oslo", "no report"},
	}
}

// callEach calls each endpoint, and calls it again while its handler works.
func callEach(ctx context.Context, d *demo) (string, error) {
	var wrong []error
	right := 0
	for _, e := range declaredEndpoints() {
		c, err := d.collide(ctx, e.subject, e.call, e.call)
		if err == nil {
			d.showCollision(e, c)
			err = errors.Join(
				want("locks in Redis", fmt.Sprint(slices.Sorted(maps.Keys(c.locks))), fmt.Sprint(e.keys)),
				d.heldBySelf(c.locks),
				want("the first caller got", c.first, e.answer),
				want("the second caller got", c.second, e.answered))
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", e.label, err))
			continue
		}
		right++
	}
	return fmt.Sprintf("%d as declared", right), errors.Join(wrong...)
}

// heldBySelf returns an error if a lock has a holder other than the service.
func (d *demo) heldBySelf(locks map[string]string) error {
	for key, holder := range locks {
		if !strings.Contains(holder, d.locks.ID()) {
			return fmt.Errorf("%s is held by %s, want a holder of client %s", key, holder, d.locks.ID())
		}
	}
	return nil
}

func (d *demo) showCollision(e endpoint, c collision) {
	d.out.linef("%s", e.label)
	for _, key := range slices.Sorted(maps.Keys(c.locks)) {
		d.out.linef("  while it runs  HGETALL %s%s → %s", d.backend.prefix, key, c.locks[key])
	}
	d.out.linef("  answers        %s; to a second caller %s, after %s", c.first, c.second, milliseconds(c.waited))
}
