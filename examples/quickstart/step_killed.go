package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// killHolder starts a process that acquires the lock of the bowls, kills it and buys a bowl.
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
	state, err := d.readLock(ctx, "bowl")
	if err != nil {
		return "", err
	}
	d.print(state)
	if field, _, err := state.holder(); err != nil || !strings.HasPrefix(field, victim.id) {
		return "", fmt.Errorf("the lock is held by %s and not by the dead process", state.holders())
	}
	d.curl(d.gin[1], "/items/bowl/buy")
	bought, err := d.gin[1].buy(ctx, "bowl")
	if err != nil {
		return "", err
	}
	return d.checkWait(bought, state.ttl, time.Since(killed))
}

// checkWait compares the wait of a customer with the remaining lease.
func (d *demo) checkWait(bought outcome, left, waited time.Duration) (string, error) {
	d.out.linef("%s after %d ms; %d ms of the lease were left", bought, waited.Milliseconds(), left.Milliseconds())
	const rounding = 20 * time.Millisecond // the clock of Redis may differ
	seen := fmt.Sprintf("served after %.1f s", waited.Seconds())
	const late = 5 * time.Second // on a busy machine
	if bought != sold || waited < left-rounding || waited > left+late {
		return seen, fmt.Errorf("%s after %s, while %s of the lease were left", bought, waited, left)
	}
	return seen, nil
}
