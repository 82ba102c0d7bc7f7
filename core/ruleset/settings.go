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

// Severities lists the severities.
func Severities() []Severity { return []Severity{SeverityError, SeverityWarn, SeverityIgnore} }

// Settings are what a rule file says about itself as a whole. A set that is written
// in Go has the defaults.
type Settings struct {
	// Disabled lets every handler run without its lock, counted: the kill switch.
	// What the rules say about it counts no more.
	Disabled bool `rule:"disabled"`

	// DryRun makes a dry run of every rule.
	DryRun bool `rule:"dry_run"`

	// AllowRekey lets a reload change the key, kind, prefix or permits of a rule that is in
	// force. Programs with the old file and with the new one then hold different
	// locks for the same thing.
	AllowRekey bool `rule:"allow_rekey"`

	// Unmatched is what rules are that match no endpoint of the program. Default:
	// [SeverityError].
	Unmatched Severity `rule:"unmatched"`

	// Uncovered is what endpoints are that change something and have no rule, not
	// even one that says None: HTTP methods other than GET, HEAD, OPTIONS and TRACE,
	// and gRPC methods whose idempotency_level is not NO_SIDE_EFFECTS. Default:
	// [SeverityIgnore].
	Uncovered Severity `rule:"uncovered"`
}

// Settings are the settings of the file that the set was loaded from.
func (s *Set) Settings() Settings { return cmp.Or(s.orEmpty().settings, defaultSettings()) }

func defaultSettings() Settings {
	return Settings{Unmatched: SeverityError, Uncovered: SeverityIgnore}
}
