package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// callsAfterReload is how many calls of the traffic must succeed after each reload.
const callsAfterReload = 40

// reload publishes a rule file, prints what changes, and waits for traffic under the
// new rules. It is an error when the service refuses the file.
func (d *demo) reload(ctx context.Context, text string, by publish) error {
	old, began := d.service.Rules(), time.Now()
	if err := d.take(ctx, text, by); err != nil {
		return err
	}
	d.out.linef("in force after %s", milliseconds(time.Since(began)))
	d.showChanges(old)
	return d.traffic.await(ctx, callsAfterReload)
}

// reloadWith is reload with one text of the original replaced.
func (d *demo) reloadWith(ctx context.Context, old, replacement string, by publish) error {
	text, err := d.file.with(old, replacement)
	if err != nil {
		return err
	}
	return d.reload(ctx, text, by)
}

// restore puts the original back, if another file is there.
func (d *demo) restore(ctx context.Context) error {
	if d.file.current == d.file.original {
		return nil
	}
	return d.take(ctx, d.file.original, byRename)
}

// take publishes a rule file that the service must take.
func (d *demo) take(ctx context.Context, text string, by publish) error {
	refused, err := d.file.put(ctx, text, by)
	if refused != nil {
		return fmt.Errorf("the file was refused: %w", refused)
	}
	return err
}

// refused publishes a file that the service must refuse. It is an error when the
// service takes it, or when the rules in force are not those of before.
func (d *demo) refused(ctx context.Context, text string) (message string, err error) {
	old := d.service.Rules()
	refused, err := d.file.put(ctx, text, byRename)
	switch {
	case err != nil:
		return "", err
	case refused == nil:
		return "", fmt.Errorf("the service has taken the file")
	case d.service.Rules() != old:
		return "", fmt.Errorf("the old rules are not in force any more")
	}
	return refused.Error(), d.traffic.await(ctx, callsAfterReload)
}

// showChanges prints what is different from the rules of before.
func (d *demo) showChanges(old *ruleset.Set) {
	for _, change := range ruleset.Diff(old, d.service.Rules()) {
		d.out.linef("  %s", change)
	}
}
