package ruleset

import "cmp"

// Severity says what becomes of a finding.
type Severity string

// The severities.
const (
	SeverityError  Severity = "error"  // start-up and reload fail
	SeverityWarn   Severity = "warn"   // observers are notified
	SeverityIgnore Severity = "ignore" // nothing
)

// Settings are what a rule file says about itself as a whole. A set that is written
// in Go has the defaults.
type Settings struct {
	// Disabled lets every handler run without its lock, counted: the kill switch.
	// What the rules say about it counts no more.
	Disabled bool

	// DryRun makes a dry run of every rule.
	DryRun bool

	// AllowRekey lets a reload change the key, kind, prefix or permits of a rule that is in
	// force. Programs with the old file and with the new one then hold different
	// locks for the same thing.
	AllowRekey bool

	// Unmatched is what rules are that match no endpoint of the program. Default:
	// [SeverityError].
	Unmatched Severity

	// Uncovered is what endpoints are that change something and have no rule, not
	// even one that says None: HTTP methods other than GET, HEAD, OPTIONS and TRACE,
	// and gRPC methods whose idempotency_level is not NO_SIDE_EFFECTS. Default:
	// [SeverityIgnore].
	Uncovered Severity
}

// Settings are the settings of the file that the set was loaded from.
func (s *Set) Settings() Settings { return cmp.Or(s.orEmpty().settings, defaultSettings()) }

func defaultSettings() Settings {
	return Settings{Unmatched: SeverityError, Uncovered: SeverityIgnore}
}

// settingFields is the table of the fields of [Settings], in their order.
var settingFields = []*field[Settings]{ //nolint:gochecknoglobals // a table that is only read
	column("disabled", boolType{}, func(s *Settings) *bool { return &s.Disabled }),
	column("dry_run", boolType{}, func(s *Settings) *bool { return &s.DryRun }),
	column("allow_rekey", boolType{}, func(s *Settings) *bool { return &s.AllowRekey }),
	column("unmatched", severityType, func(s *Settings) *Severity { return &s.Unmatched }),
	column("uncovered", severityType, func(s *Settings) *Severity { return &s.Uncovered }),
}

var severityType = wordType[Severity]{wordsOf("severity", []Severity{SeverityError, SeverityWarn, SeverityIgnore})} //nolint:gochecknoglobals // a table that is only read
