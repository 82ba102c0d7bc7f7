package ruleset

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// defaultProfile is the name of the values that apply to every rule.
const defaultProfile = "default"

// isDefaultMeant reports whether a name looks like the name of the default profile. Another profile must not
// have such a name, because no rule would use its values.
func isDefaultMeant(name string) bool {
	folded := strictyaml.FoldKey(name)
	return name != defaultProfile && (folded == defaultProfile || folded == defaultProfile+"s")
}

// profileOf returns the declaration of a profile in Go. The source of the declaration contains
// the name.
func profileOf(name string, r Rule) Declared {
	return Declared{Rule: r, Source: Source{Layer: LayerProfile, Profile: name}}
}

// Profiles lists the built-in profiles: quick (3 s wait, 10 s lease), normal (5 s,
// 30 s), heavy (10 s, 60 s) and long (10 s, watchdog).
func Profiles() []string {
	var names []string
	for _, p := range builtinProfiles() {
		names = append(names, p.Source.Profile)
	}
	return names
}

func builtinProfiles() []Declared {
	return []Declared{
		profileOf("quick", Rule{WaitTime: 3 * time.Second, LeaseTime: 10 * time.Second}),
		profileOf("normal", Rule{WaitTime: 5 * time.Second, LeaseTime: 30 * time.Second}),
		profileOf("heavy", Rule{WaitTime: 10 * time.Second, LeaseTime: 60 * time.Second}),
		profileOf("long", Rule{WaitTime: 10 * time.Second, LeaseTime: Watchdog}),
	}
}

func builtinDefaults() Rule {
	return Rule{
		Kind:       Reentrant,
		WaitTime:   DefaultWaitTime,
		LeaseTime:  DefaultLeaseTime,
		OnBusy:     failpolicy.Error,
		OnBackend:  failpolicy.Error,
		OnKey:      failpolicy.Error,
		OnOverload: failpolicy.Error,
		OnLost:     failpolicy.Cancel,
		KeyFormat:  Encode,
	}
}

// profileList holds profiles by name.
type profileList struct {
	names  []string // in order
	byName map[string]*Declared
	unread bool // the list lacks profiles whose names could not be read
	missed int  // the number of unknown names that rules asked for
}

// add adds profiles. A profile replaces an earlier one of its name.
func (l *profileList) add(profiles ...Declared) {
	for _, p := range profiles {
		name := p.Source.Profile
		if l.byName[name] == nil {
			l.names = append(l.names, name)
		}
		l.byName[name] = &p
	}
}

// unknown returns the message for a name that the list does not contain.
func (l *profileList) unknown(name string) string {
	const shown, guesses = 10, 100
	e := failpolicy.UnknownWordError{What: "profile", Word: name, Known: l.names}
	if l.missed++; l.missed <= guesses && len(name) <= maxNameLength {
		e.Suggestion = failpolicy.Nearest(name, l.names)
	}
	if more := len(l.names) - shown; more > 1 {
		e.Known = slices.Concat(l.names[:shown], []string{fmt.Sprintf("and %d more", more)})
	}
	return e.Error()
}
