package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
)

// killSwitch lets every handler run without its lock while the file has the switch.
func killSwitch(ctx context.Context, d *demo) (string, error) {
	answers, during, err := d.callWith(ctx, "disabled: true\n")
	if err == nil && during.Unlocked != aspect.UnlockedDisabled {
		err = fmt.Errorf("the handler ran unlocked because of %q, want %q", during.Unlocked, aspect.UnlockedDisabled)
	}
	return fmt.Sprintf("%s, %s, %s", answers[0], answers[1], answers[2]), err
}

// dryRun also lets handlers run unlocked, but counts what would have happened.
func dryRun(ctx context.Context, d *demo) (string, error) {
	answers, during, err := d.callWith(ctx, "dry_run: true\n")
	if err == nil && (!during.DryRun || during.Cause != failpolicy.Busy) {
		err = fmt.Errorf("dry run %t with cause %q was counted, want one with cause busy", during.DryRun, during.Cause)
	}
	return fmt.Sprintf("%s, %s (%s counted), %s", answers[0], answers[1], during.Cause, answers[2]), err
}

// callWith calls a route whose lock is taken: before a setting is in the file, while it is
// there, and afterwards. It returns the observed decision about the second call.
func (d *demo) callWith(ctx context.Context, setting string) (answers [3]string, during aspect.Decision, err error) {
	err = d.whileTaken(ctx, "admin:/admin/reindex", func() (err error) {
		for i, text := range []string{"", setting + d.file.original, d.file.original} {
			if text != "" {
				if err := d.reload(ctx, text, byRename); err != nil {
					return err
				}
			}
			if answers[i], err = post("/admin/reindex")(ctx, d.client, ""); err != nil {
				return err
			}
			d.out.linef("POST /admin/reindex: %s", answers[i])
			if i == 1 {
				during = d.witness.decision("POST /admin/*")
			}
		}
		return nil
	})
	return answers, during, errors.Join(err, want("the answers", fmt.Sprint(answers), "[423 200 423]"))
}
