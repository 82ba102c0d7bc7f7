package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// callsAfterReload is the number of calls of the traffic that must succeed after each reload.
const callsAfterReload = 40

// reload publishes a rule file, prints the changes and waits for traffic under the new rules. It
// returns an error if the service refuses the file.
func (d *demo) reload(ctx context.Context, text string, by publish) error {
	old, began := d.service.Rules(), time.Now()
	if err := d.publishAccepted(ctx, text, by); err != nil {
		return err
	}
	d.out.linef("in force after %s", milliseconds(time.Since(began)))
	d.showChanges(old)
	return d.traffic.await(ctx, callsAfterReload)
}

// reloadWith reloads the original with one text replaced.
func (d *demo) reloadWith(ctx context.Context, old, replacement string, by publish) error {
	text, err := d.file.with(old, replacement)
	if err != nil {
		return err
	}
	return d.reload(ctx, text, by)
}

// restore publishes the original if another file is published.
func (d *demo) restore(ctx context.Context) error {
	if d.file.current == d.file.original {
		return nil
	}
	return d.publishAccepted(ctx, d.file.original, byRename)
}

// publishAccepted publishes a rule file that the service must apply.
func (d *demo) publishAccepted(ctx context.Context, text string, by publish) error {
	refused, err := d.file.put(ctx, text, by)
	if refused != nil {
		return fmt.Errorf("the file was refused: %w", refused)
	}
	return err
}

// publishRefused publishes a file that the service must refuse. It returns an error if the
// service applies the file, or if the rules in force change.
func (d *demo) publishRefused(ctx context.Context, text string) (message string, err error) {
	old := d.service.Rules()
	refused, err := d.file.put(ctx, text, byRename)
	switch {
	case err != nil:
		return "", err
	case refused == nil:
		return "", fmt.Errorf("the service has applied the file")
	case d.service.Rules() != old:
		return "", fmt.Errorf("the old rules are no longer in force")
	}
	return refused.Error(), d.traffic.await(ctx, callsAfterReload)
}

// showChanges prints the differences between the old rules and the new ones.
func (d *demo) showChanges(old *ruleset.Set) {
	for _, change := range ruleset.Diff(old, d.service.Rules()) {
		d.out.linef("  %s", change)
	}
}
