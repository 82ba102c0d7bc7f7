package aspect

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Returned watches the handlers that a Lock function of an adapter returns for one rule, to warn of a rule that guards
// nothing because the program has dropped them all. The zero value is ready to use.
type Returned struct {
	used  atomic.Bool
	alive atomic.Int32 // handlers that are reachable
}

// Mark is a part of one handler. No other value refers to it.
type Mark struct{ of *Returned }

// Watch returns the mark for one more handler. If all marks of r are garbage-collected before the client is closed, and none
// was used, observers get the warning.
func (r *Returned) Watch(a *Aspect, warning *ruleset.Problem) *Mark {
	m := &Mark{r}
	if r.used.Load() {
		return m
	}
	r.alive.Add(1)
	runtime.AddCleanup(m, func(r *Returned) {
		if r.alive.Add(-1) > 0 || r.used.Load() {
			return
		}
		refusal := a.env.locks.ForAdapters().Refusal(context.Background()) //nolint:forbidigo // a cleanup has no caller
		if !errors.Is(refusal, core.ErrClosed) {
			a.Warn(warning)
		}
	}, r)
	return m
}

// Use records that the program uses the handler.
func (m *Mark) Use() {
	if !m.of.used.Load() {
		m.of.used.Store(true)
	}
}
