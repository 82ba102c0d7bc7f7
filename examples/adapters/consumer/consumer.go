// Package consumer is an adapter for a consumer of messages, for example of Kafka. It handles
// each message under the locks of the rules of its topic. A rule names a topic as a function
// with the prefix topic/:
//
//	rules:
//	  - func: topic/orders.paid
//	    key: "order:#{key}"
//
// Variables of keys are topic, partition, key, header and value, which is JSON.
package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Handler handles a message.
type Handler func(ctx context.Context, m *Message) error

// Result is the result of a message.
type Result struct {
	// Err is nil if the message is done. It is an [*aspect.RefusedError] if the lock was not
	// acquired or was lost. Otherwise it is the error of the handler.
	Err error

	Lock  string // "skipped" or "null": the handler did not run; "unlocked": it ran without the lock; or ""
	Token int64  // the fencing token that the handler had; 0: none
}

// Guard handles messages under the rules of their topics. It is safe for concurrent use.
type Guard struct {
	aspect    *aspect.Aspect
	schema    *keyexpr.Schema
	fallbacks map[string]Handler
	topics    *aspect.Registry[*topic, struct{}]
	table     *aspect.Table[*topic, struct{}]
}

// prefix is the prefix of topics in rules.
const prefix = "topic/"

// topic is a topic with a handler: the endpoint of the registry.
type topic struct {
	endpoint ruleset.Endpoint
	declared []ruleset.Declared // the rules of the topic in Go
	handler  Handler
}

// New returns a guard with the given rules: a *ruleset.Set, or a *ruleset.Live, which is reloaded. The provider
// that a was created with may be passed, too, because the guard uses only the rules for topics. fallbacks may
// be nil.
func New(a *aspect.Aspect, rules ruleset.Provider, fallbacks map[string]Handler) (*Guard, error) {
	schema, err := newSchema()
	if err != nil {
		return nil, err
	}
	g := &Guard{aspect: a, schema: schema, fallbacks: fallbacks}
	g.topics = aspect.NewRegistry(a, aspect.Adapter[*topic, struct{}]{
		Transport: ruleset.TransportFunc,
		Prefix:    prefix,
		Noun:      "topic",
		Endpoint:  func(t *topic) ruleset.Endpoint { return t.endpoint },
		Declared:  func(t *topic) ([]ruleset.Declared, []*ruleset.Problem) { return t.declared, nil },
		Compile:   g.compile,
		Changes:   func(*topic) bool { return true },
		Hint:      "write topic/ and the name of a topic with a handler",
	})
	g.table, err = g.topics.Table(rules)
	return g, err
}

// compile compiles the rules of a topic. A topic without rules has no locks.
func (g *Guard) compile(_ *ruleset.Set, t *topic, rules []*ruleset.Resolved) (*aspect.Point, struct{}, error) {
	if len(rules) == 0 {
		return nil, struct{}{}, nil
	}
	point, err := g.aspect.Prepare(aspect.Site{
		Endpoint: t.endpoint, Schema: g.schema, Late: []string{"value"}, Fallbacks: slices.Collect(maps.Keys(g.fallbacks)),
	}, rules...)
	return point, struct{}{}, err
}

// Topics holds the handlers by topic, with their rules in Go.
type Topics map[string]struct {
	Handler Handler
	Rules   []ruleset.Rule
}

// Handle checks the rules of all topics and returns the function that handles their
// messages. Call it once. The error lists every problem, including rules that match no
// topic. A topic with invalid rules refuses its messages. Later reloads are checked in the
// same way.
func (g *Guard) Handle(topics Topics) (handle func(context.Context, *Message) Result, err error) {
	known := make(map[string]*topic, len(topics))
	for name, what := range topics {
		t := &topic{endpoint: ruleset.Func(prefix + name), handler: what.Handler}
		for _, r := range what.Rules {
			r.Endpoint = t.endpoint
			t.declared = append(t.declared, ruleset.Declared{Rule: r})
		}
		known[name] = t
	}
	report := g.topics.Check(slices.Collect(maps.Values(known))...)
	return func(ctx context.Context, m *Message) Result {
		if t := known[m.Topic]; t != nil {
			return g.run(ctx, t, m)
		}
		return Result{Err: fmt.Errorf("consumer: topic %q has no handler", m.Topic)}
	}, g.aspect.Conclude(report)
}

// run handles a message under the rules in force.
func (g *Guard) run(ctx context.Context, t *topic, m *Message) Result {
	switch e := g.table.At(t); {
	case e == nil:
		return Result{Err: t.handler(ctx, m)}
	case e.Err != nil:
		return Result{Err: aspect.Misconfigured(t.endpoint, e.Err)}
	default:
		c := &call{message: m, handler: t.handler, fallbacks: g.fallbacks}
		outcome := e.Point.Run(ctx, c)
		return c.answer(&outcome)
	}
}

// Aspect returns the aspect, which has the kill switch [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }
