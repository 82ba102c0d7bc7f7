package adaptertest

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// formatRuleFile returns the text of a rule file with the rule r.
func formatRuleFile(r ruleset.Rule) string {
	return fmt.Sprintf("rules:\n  - %s: %q\n%s", r.Endpoint.Transport, r.Endpoint.Label(), formatFields(r))
}

// formatFields returns the fields of r as lines of a rule file. It leaves out fields that no test of this package uses.
func formatFields(r ruleset.Rule) string {
	var text strings.Builder
	for _, field := range []struct{ name, value string }{
		{"key", r.Key},
		{"profile", r.Profile},
		{"on_busy", string(r.OnBusy)},
		{"on_backend", string(r.OnBackend)},
		{"on_key", string(r.OnKey)},
		{"on_overload", string(r.OnOverload)},
		{"fallback", r.Fallback},
		{"on_lost", string(r.OnLost)},
	} {
		if field.value != "" {
			fmt.Fprintf(&text, "    %s: %q\n", field.name, field.value)
		}
	}
	if r.WaitTime == ruleset.NoWait {
		text.WriteString("    wait_time: none\n")
	} else if r.WaitTime > 0 {
		fmt.Fprintf(&text, "    wait_time: %s\n", r.WaitTime)
	}
	if r.MaxHold > 0 {
		fmt.Fprintf(&text, "    max_hold: %s\n", r.MaxHold)
	}
	if r.Debounce > 0 {
		fmt.Fprintf(&text, "    debounce: %s\n", r.Debounce)
	}
	if r.MaxWaiters > 0 {
		fmt.Fprintf(&text, "    max_waiters: %d\n", r.MaxWaiters)
	}
	return text.String()
}

// wildcardOf returns the wildcard endpoint for all paths below the first segment of e.Path.
func wildcardOf(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = e.Path[:strings.Index(e.Path[1:], "/")+2] + "*"
	return e
}
