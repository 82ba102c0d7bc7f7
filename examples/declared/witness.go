package main

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// witness is an observer that remembers the last decision of each rule, and every reload.
type witness struct {
	reloads chan ruleset.Reload

	mu   sync.Mutex
	last map[string]aspect.Decision
}

func newWitness() *witness {
	return &witness{reloads: make(chan ruleset.Reload, 100), last: map[string]aspect.Decision{}}
}

// ObserveLoss makes the witness an observer of locks, as [core.WithObserver] demands. The demonstration
// loses none.
func (w *witness) ObserveLoss(context.Context, core.Loss) {}

// ObserveReload passes the reload on; an observer must not block.
func (w *witness) ObserveReload(r ruleset.Reload) {
	select {
	case w.reloads <- r:
	default:
	}
}

// ObserveDecision keeps the decision.
func (w *witness) ObserveDecision(_ context.Context, d aspect.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[d.Rule] = d
}

func (w *witness) decision(rule string) aspect.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[rule]
}
