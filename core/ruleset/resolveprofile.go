package ruleset

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/failpolicy"
)

// profileList is the profiles by name.
type profileList struct {
	names  []string // in order
	byName map[string]*Declared
	unread bool // there are more, whose names could not be read
	missed int  // how many were asked for in vain
}

// add adds profiles, each in the place of that of its name.
func (l *profileList) add(profiles ...Declared) {
	for _, p := range profiles {
		name := p.Source.Profile
		if l.byName[name] == nil {
			l.names = append(l.names, name)
		}
		l.byName[name] = &p
	}
}

// unknown says what to write instead of a name.
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
