package ruleset

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/failpolicy"
)

// profileList is the profiles by name.
type profileList struct {
	names  []string // in order
	byName map[string]*profile
	unread bool // there are more, whose names could not be read
	missed int  // how many were asked for in vain
}

func newProfileList(list []profile, unread bool) profileList {
	l := profileList{byName: make(map[string]*profile, len(list)), unread: unread}
	for _, p := range list {
		l.add(p)
	}
	return l
}

// add adds a profile, or replaces that of its name.
func (l *profileList) add(p profile) {
	if l.byName[p.name] == nil {
		l.names = append(l.names, p.name)
	}
	l.byName[p.name] = &p
}

// find is the profile of a name, nil if there is none.
func (l *profileList) find(name string) *profile { return l.byName[name] }

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
