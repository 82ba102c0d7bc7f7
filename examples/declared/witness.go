package main

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// witness is an observer that remembers what it was told: of each rule the last
// decision, and every reload.
type witness struct {
	reloads chan ruleset.Reload

	mu   sync.Mutex
	last map[string]aspect.Decision
}

func newWitness() *witness {
	return &witness{reloads: make(chan ruleset.Reload, 100), last: map[string]aspect.Decision{}}
}

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
