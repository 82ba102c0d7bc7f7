package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// killHolder lets another process take the lock of the bowls, kills it, and buys one.
func killHolder(ctx context.Context, d *demo) (string, error) {
	if err := d.stock.Write(ctx, "bowl", 1); err != nil {
		return "", err
	}
	victim, err := startHolder(ctx, heldLock{d.backend.url, d.backend.prefix, lockName("bowl")})
	if err != nil {
		return "", err
	}
	d.out.linef("process %d has the lock: client %s", victim.cmd.Process.Pid, victim.id)
	d.out.commandf("kill -KILL %d", victim.cmd.Process.Pid)
	victim.kill()
	killed := time.Now()
	state, err := d.look(ctx, "bowl")
	if err != nil {
		return "", err
	}
	d.print(state)
	if field, _, err := state.holder(); err != nil || !strings.HasPrefix(field, victim.id) {
		return "", fmt.Errorf("the dead process does not hold the lock, but %s", state.holders())
	}
	d.curl(d.gin[1], "/items/bowl/buy")
	bought, err := d.gin[1].buy(ctx, "bowl")
	if err != nil {
		return "", err
	}
	return d.judgeWait(bought, state.ttl, time.Since(killed))
}

// judgeWait compares a customer's wait with what was left of the lease.
func (d *demo) judgeWait(bought outcome, left, waited time.Duration) (string, error) {
	d.out.linef("%s after %d ms; the lease had %d ms to go", bought, waited.Milliseconds(), left.Milliseconds())
	const rounding = 20 * time.Millisecond // Redis has a clock of its own
	seen := fmt.Sprintf("served after %.1f s", waited.Seconds())
	const late = 5 * time.Second // on a busy machine
	if bought != sold || waited < left-rounding || waited > left+late {
		return seen, fmt.Errorf("%s after %s, while the lease had %s to go", bought, waited, left)
	}
	return seen, nil
}
