package ruleset

import "log/slog"

// Unlocked lists what runs without its lock from this reload on, in words for a log:
// "the whole file: disabled", or of each endpoint and rule that had a lock before, such as
// "http POST /orders pay: removed". They are those of [Unlocked]. A file that is loaded for the first time has its own settings only. It is
// empty after a refusal, which changes nothing.
func (r Reload) Unlocked() []string {
	if r.Err != nil || r.Set == nil {
		return nil
	}
	before, settings := r.Old.Settings(), r.Set.Settings()
	switch {
	case settings.Disabled:
		return []string{"the whole file: disabled"}
	case settings.DryRun && r.Old != nil && !before.DryRun && !before.Disabled:
		return []string{"the whole file: dry_run"}
	case settings.DryRun || r.Old == nil:
		return nil
	}
	var list []string
	for _, u := range Unlocked(r.Old, r.Set) {
		list = append(list, u.String())
	}
	return list
}

// logApplied logs, where no observer is notified of it, that a changed file is in force, with what
// runs unlocked from now on and the end of a refusal that was logged: in one line.
func (l *Live) logApplied(r Reload) {
	if r.Err != nil {
		return
	}
	list, over := r.Unlocked(), ""
	if l.alarmed {
		over = "; the refusal is over"
	}
	switch {
	case len(list) > 0:
		slog.Error("lock rules loaded, and endpoints run unlocked"+over, "file", r.File, "hash", r.Hash, "unlocked", list)
	case r.Old != nil:
		slog.Info("lock rules loaded"+over, "file", r.File, "hash", r.Hash)
	}
	l.alarmed = false
}
