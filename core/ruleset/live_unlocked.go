package ruleset

import (
	"log/slog"
	"strings"
)

// Unlocked lists what runs without its lock from this reload on, in words for a log:
// "the whole file: disabled", or of each rule that had a lock before, such as "http
// POST /orders pay: removed". A file that is loaded for the first time has its own settings
// only. It is empty after a refusal, which changes nothing.
func (r Reload) Unlocked() []string {
	if r.Err != nil || r.Set == nil {
		return nil
	}
	before, settings := Settings{}, r.Set.Settings()
	if r.Old != nil {
		before = r.Old.Settings()
	}
	switch {
	case settings.Disabled:
		return []string{"the whole file: disabled"}
	case settings.DryRun && r.Old != nil && !before.DryRun && !before.Disabled:
		return []string{"the whole file: dry_run"}
	case settings.DryRun || r.Old == nil:
		return nil
	}
	return unlockedRules(r.Old, r.Set)
}

// unlockedRules are the rules that lock in old and do not in next.
func unlockedRules(old, next *Set) []string {
	var list []string
	after := byIdentity(next)
	for _, was := range old.Rules() {
		if why := unlocks(was); why != "" {
			continue
		}
		why := "removed"
		if is := after[identityOf(&was.Rule)]; is != nil {
			why = unlocks(is)
		}
		if why != "" {
			list = append(list, labelled(was)+": "+why)
		}
	}
	return list
}

// labelled is the endpoint of a rule, and its name if it has one of its own.
func labelled(r *Resolved) string {
	if r.Name == r.Endpoint.Label() {
		return r.Endpoint.String()
	}
	return strings.TrimSpace(r.Endpoint.String() + " " + r.Name)
}

// unlocks is the field by which a rule takes no lock, empty if it takes one.
func unlocks(r *Resolved) string {
	switch {
	case r.None:
		return "none"
	case r.Disabled:
		return "disabled"
	case r.DryRun:
		return "dry_run"
	default:
		return ""
	}
}

// logApplied logs, if nobody else hears of it, what runs unlocked from now on, and that the
// file is in force after a refusal that was logged: in one line.
func (l *Live) logApplied(r Reload) {
	if r.Err != nil || len(l.observers) > 0 {
		return
	}
	list, text := r.Unlocked(), "lock rules loaded"
	if len(list) > 0 {
		text += ", and endpoints run unlocked"
	}
	if l.alarmed {
		text += "; the refusal is over"
	}
	switch {
	case len(list) > 0:
		slog.Error(text, "file", r.File, "hash", r.Hash, "unlocked", list)
	case l.alarmed:
		slog.Info(text, "file", r.File, "hash", r.Hash)
	}
	l.alarmed = false
}
