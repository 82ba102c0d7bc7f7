package main

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// witness is an observer that keeps the last decision of each rule and passes every reload to a
// channel.
type witness struct {
	reloads chan ruleset.Reload

	mu   sync.Mutex
	last map[string]aspect.Decision
}

func newWitness() *witness {
	return &witness{reloads: make(chan ruleset.Reload, 100), last: map[string]aspect.Decision{}}
}

func (w *witness) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Reload: w.observeReload, Decision: w.observeDecision}}
}

// observeReload sends the reload to a channel. It does not block, because an observer must not.
func (w *witness) observeReload(r ruleset.Reload) {
	select {
	case w.reloads <- r:
	default:
	}
}

// observeDecision keeps the decision.
func (w *witness) observeDecision(_ context.Context, d aspect.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[d.Rule] = d
}

func (w *witness) decision(rule string) aspect.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[rule]
}
