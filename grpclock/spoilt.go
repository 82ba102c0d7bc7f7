package grpclock

import (
	"errors"

	"github.com/interlock-go/interlock/core/ruleset"
)

// warnOnce tells observers why a method cannot work, at its first call: its callers are told
// that it is misconfigured, and nothing else. A reload compiles methods anew.
func (g *Guard) warnOnce(m *method, problems ...*ruleset.Problem) {
	m.warned.Do(func() { g.aspect.Warn(problems...) })
}

// warnIfSpoilt is warnOnce for a method of which only a call shows that it cannot work.
func (g *Guard) warnIfSpoilt(m *method, path string, err error) {
	if err == nil {
		return
	}
	if answer, ok := errors.AsType[*statusError](err); ok && answer.spoilt {
		g.warnOnce(m, &ruleset.Problem{Endpoint: ruleset.GRPC(path), Message: answer.reason.Error()})
	}
}
