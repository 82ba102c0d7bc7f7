// Package consumer is an adapter for a consumer of messages, such as one of Kafka: it
// handles each message under the locks that the rules of its topic ask for. A rule names
// a topic as a function, with topic/ before it:
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

// Result is what became of a message.
type Result struct {
	// Err is nil for a message that is done with, an [*aspect.RefusedError] for one whose
	// lock was not acquired or was lost, or the handler's own.
	Err error

	Lock  string // "skipped" or "null": the handler did not run; "unlocked": it ran without the lock; or ""
	Token int64  // the fencing token under which the handler ran, 0 without
}

// Guard handles messages under the rules of their topics. It is safe for concurrent use.
type Guard struct {
	aspect    *aspect.Aspect
	schema    *keyexpr.Schema
	fallbacks map[string]Handler
	topics    *aspect.Registry[*topic, struct{}]
	table     *aspect.Table[*topic, struct{}]
}

// prefix begins the names of topics in rules.
const prefix = "topic/"

// topic is a topic that is handled: what the registry knows an endpoint by.
type topic struct {
	endpoint ruleset.Endpoint
	declared []ruleset.Declared // the rules that are put on it in Go
	handler  Handler
}

// New makes a guard over rules, a set or one that is reloaded. The set of a may be the
// same: rules for topics are the guard's, others those of functions in [aspect.Wrap].
// fallbacks may be nil.
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
		Hint:      "write topic/ and the name of a topic that is handled",
	})
	g.table, err = g.topics.Table(rules)
	return g, err
}

// compile compiles the rules of a topic; without any there is nothing to lock.
func (g *Guard) compile(_ *ruleset.Set, t *topic, rules []*ruleset.Resolved) (*aspect.Point, struct{}, error) {
	if len(rules) == 0 {
		return nil, struct{}{}, nil
	}
	point, err := g.aspect.Prepare(aspect.Site{
		Endpoint: t.endpoint, Schema: g.schema, Late: []string{"value"}, Fallbacks: slices.Collect(maps.Keys(g.fallbacks)),
	}, rules...)
	return point, struct{}{}, err
}

// Topics are handlers by their topics, with rules in Go if there are any.
type Topics map[string]struct {
	Handler Handler
	Rules   []ruleset.Rule
}

// Handle checks the rules of all topics, and gives what handles their messages. Call it
// once. The error has every problem, and a rule that matches no topic is one; a topic
// whose rules cannot work refuses its messages. From then on a reload is judged likewise.
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
		return Result{Err: fmt.Errorf("consumer: nobody handles topic %q", m.Topic)}
	}, g.aspect.Conclude(report)
}

// run handles one message under the rules that are in force now.
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

// Aspect has the kill switch: [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }
