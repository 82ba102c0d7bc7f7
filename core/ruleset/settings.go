package ruleset

// Severity selects how a finding is treated.
type Severity string

// The severities.
const (
	SeverityError  Severity = "error"  // start-up and reload fail
	SeverityWarn   Severity = "warn"   // observers are notified
	SeverityIgnore Severity = "ignore" // nothing happens
)

// Settings apply to a rule file as a whole. A set that is written in Go has the defaults.
type Settings struct {
	// Disabled runs every handler without its lock: the kill switch. Such calls are counted.
	// The rules' own disabled no longer matters.
	Disabled bool

	// DryRun makes a dry run of every rule.
	DryRun bool

	// AllowRekey lets a reload change the key, kind, prefix or permits of a rule that is in
	// force. Programs with the old file and with the new one then hold different
	// locks for the same thing.
	AllowRekey bool

	// Unmatched is the severity of a rule that matches no endpoint of the program. Default:
	// [SeverityError]. Rules for a transport whose guard did not get the set are a warning at the first
	// call of the program, unless Unmatched is [SeverityIgnore].
	Unmatched Severity

	// Uncovered is the severity of an endpoint that may modify data and has no rule, not even
	// one with None. An HTTP endpoint may modify data unless its method is GET, HEAD, OPTIONS
	// or TRACE, a gRPC method unless its idempotency_level is NO_SIDE_EFFECTS. Default:
	// [SeverityIgnore].
	Uncovered Severity
}

func defaultSettings() Settings {
	return Settings{Unmatched: SeverityError, Uncovered: SeverityIgnore}
}
