package ruleset

import (
	"log/slog"
	"strings"
)

// Unlocked lists what runs without its lock from this reload on, in words for a log:
// "the whole file: disabled", or of each rule that had a lock before, such as "POST
// /orders pay: removed". A file that is loaded for the first time has its own settings
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
			list = append(list, strings.TrimSpace(was.Endpoint.String()+" "+was.Name)+": "+why)
		}
	}
	return list
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

// warnOfUnlocked logs what runs unlocked from now on, if nobody else hears of it.
func (l *Live) warnOfUnlocked(r Reload) {
	if list := r.Unlocked(); len(list) > 0 && len(l.observers) == 0 {
		slog.Error("lock rules loaded: handlers run without a lock", "file", r.File, "hash", r.Hash, "unlocked", list)
	}
}
