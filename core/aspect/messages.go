package aspect

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Messages describes a transport that calls handlers by name, such as the types of tasks or the kinds of jobs. M is the type
// of one task, job or message.
type Messages[M any] struct {
	// Prefix is the prefix of the names in rules, such as "task/" for `func: task/invoice:send`.
	Prefix string

	// Noun is the word for a name in problems, such as "type of task".
	Noun string

	// Payloads lists the names that exist, each with a value of the Go type of its payload. Rules that name another field
	// of the payload do not compile. If the value is nil, any field compiles.
	Payloads map[string]any

	// Variables returns the variables of keys and conditions for a type of payload, nil if the type is unknown.
	Variables func(payload reflect.Type) []MessageVariable[M]

	// Fallbacks holds the fallback handlers by the names that rules use.
	Fallbacks map[string]func(ctx context.Context, m M) error
}

// MessageVariable is a variable of keys and conditions, with the function that returns its value for a message.
type MessageVariable[M any] struct {
	keyexpr.Variable

	Value func(m M) (any, error)      // the value; nil if Keyed is set
	Items func(m M) map[string]string // the entries; nil unless Keyed is set
}

// TextVariable returns a variable with a text as its value, such as the name of a queue.
func TextVariable[M any](name string, text func(m M) string) MessageVariable[M] {
	return MessageVariable[M]{
		Variable: keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[string]()},
		Value:    func(m M) (any, error) { return text(m), nil },
	}
}

// HeaderVariable returns a variable for texts with names, such as the headers of a message.
func HeaderVariable[M any](name string, headers func(m M) map[string]string) MessageVariable[M] {
	return MessageVariable[M]{
		Variable: keyexpr.Variable{Name: name, Keyed: &keyexpr.Keyed{Noun: name, Open: true}},
		Items:    headers,
	}
}

// JSONVariable returns a variable for a document of JSON that is decoded as [keyexpr.DecodeJSONAs] decodes it. t may be nil.
// An empty document is a missing value.
func JSONVariable[M any](name string, t reflect.Type, document func(m M) []byte) MessageVariable[M] {
	decode := func(m M) (value any, err error) {
		text := document(m)
		if len(text) == 0 {
			return value, nil
		}
		if value, err = keyexpr.DecodeJSONAs(text, t); err != nil {
			return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: "needs a document of JSON", Err: err}
		}
		return value, nil
	}
	return MessageVariable[M]{Variable: keyexpr.Variable{Name: name, Type: keyexpr.JSONType(t)}, Value: decode}
}

// MessageGuard runs the handlers of a transport under the rules of a set. It is safe for concurrent use.
type MessageGuard[M any] struct {
	aspect   *Aspect
	messages Messages[M]
	registry *Registry[string, []MessageVariable[M]]
	table    *Table[string, []MessageVariable[M]]
}

// NewMessageGuard returns a guard that follows the reloads of rules. The guard uses only the rules for names with the prefix.
// Call Check before the first message.
func NewMessageGuard[M any](a *Aspect, rules ruleset.Provider, m Messages[M]) (*MessageGuard[M], error) {
	g := &MessageGuard[M]{aspect: a, messages: m}
	g.registry = NewRegistry(a, Adapter[string, []MessageVariable[M]]{
		Transport: ruleset.TransportFunc,
		Prefix:    m.Prefix,
		Noun:      m.Noun,
		Endpoint:  g.endpoint,
		Compile:   g.compile,
		Changes:   func(string) bool { return true },
		Hint:      fmt.Sprintf("write %s and a %s that the guard knows", m.Prefix, m.Noun),
	})
	var err error
	g.table, err = g.registry.Table(rules)
	return g, err
}

func (g *MessageGuard[M]) endpoint(name string) ruleset.Endpoint {
	return ruleset.Func(g.messages.Prefix + name)
}

// compile compiles the rules of a name. A name without rules has no locks.
func (g *MessageGuard[M]) compile(_ *ruleset.Set, name string, rules []*ruleset.Resolved) (*Point, []MessageVariable[M], error) {
	if len(rules) == 0 {
		return nil, nil, nil
	}
	variables := g.messages.Variables(reflect.TypeOf(g.messages.Payloads[name]))
	declared := make([]keyexpr.Variable, len(variables))
	for i := range variables {
		declared[i] = variables[i].Variable
	}
	schema, err := keyexpr.NewSchema(declared...)
	if err != nil {
		return nil, nil, err
	}
	point, err := g.aspect.Prepare(Site{
		Endpoint: g.endpoint(name), Schema: schema, Fallbacks: slices.Collect(maps.Keys(g.messages.Fallbacks)),
	}, rules...)
	return point, variables, err
}

// Check returns every problem of the rules, including rules that match no name in Payloads. From then on, reloads are checked
// in the same way.
func (g *MessageGuard[M]) Check() error {
	return g.aspect.Conclude(g.registry.Check(slices.Collect(maps.Keys(g.messages.Payloads))...))
}

// Run runs a handler under the rules of a name. A name that is not in Payloads has only the rules of wildcards, and its
// endpoint is the wildcard, because a sender may choose the name. If the rules of the name do not compile, Run refuses the
// message; the Rule of the outcome is then a rule without fields, and its name is the label of the endpoint.
func (g *MessageGuard[M]) Run(ctx context.Context, name string, m M, handler func(ctx context.Context, m M) error) Outcome {
	switch e := g.entryOf(name); {
	case e == nil:
		return Outcome{Verdict: VerdictRan, Err: handler(ctx, m)}
	case e.Err != nil:
		return broken(e.Endpoint, e.Err)
	default:
		return e.Point.Run(ctx, &messageCall[M]{
			message: m, handler: handler, fallbacks: g.messages.Fallbacks, variables: e.Extra, values: make([]messageValue, len(e.Extra)),
		})
	}
}

// entryOf returns the rules of a name, or nil if it has none.
func (g *MessageGuard[M]) entryOf(name string) *Entry[[]MessageVariable[M]] {
	if _, listed := g.messages.Payloads[name]; listed {
		return g.table.At(name)
	}
	return g.matchWildcards(name)
}

// matchWildcards returns the rules of a name that is not in Payloads. The table knows them under the name in the rule, because
// it must not keep every name that a sender chooses.
func (g *MessageGuard[M]) matchWildcards(name string) *Entry[[]MessageVariable[M]] {
	for {
		set := g.table.Set()
		rules := set.Match(g.endpoint(name))
		if rules == nil {
			return nil
		}
		e := g.table.At(strings.TrimPrefix(rules[0].Endpoint.Path, g.messages.Prefix))
		if g.table.Set() == set { // otherwise the entry may belong to a set that a reload put into force
			return e
		}
	}
}

// broken returns the outcome of a call whose rules do not compile. Its Result equals [Misconfigured].
func broken(e ruleset.Endpoint, reason error) Outcome {
	return Outcome{
		Verdict: VerdictRefused, Misconfigured: true, Status: failpolicy.Cause("").Status(), Reason: reason,
		Rule: &ruleset.Resolved{Rule: ruleset.Rule{Endpoint: e, Name: e.Label()}},
	}
}

type holdKey struct{}

// HoldFrom returns the hold of the handler of ctx, nil if the handler runs without a lock or not in a [MessageGuard]. The
// handler uses it to refresh the lock, to release it early, or to read its token.
func HoldFrom(ctx context.Context) *core.Hold {
	hold, _ := ctx.Value(holdKey{}).(*core.Hold) //nolint:errcheck // nil if ctx has no hold
	return hold
}

// messageCall is one message. It implements [Call] and [keyexpr.Env].
type messageCall[M any] struct {
	message   M
	handler   func(ctx context.Context, m M) error
	fallbacks map[string]func(ctx context.Context, m M) error
	variables []MessageVariable[M]
	values    []messageValue // by slot
}

// messageValue is the value of a variable for one message.
type messageValue struct {
	computed bool
	value    any
	err      error
}

func (c *messageCall[M]) Env(context.Context) keyexpr.Env { return c }

func (c *messageCall[M]) Handle(ctx context.Context, g Grant) error {
	return c.handler(context.WithValue(ctx, holdKey{}, g.Hold), c.message)
}

func (c *messageCall[M]) Fallback(ctx context.Context, name string) error {
	return c.fallbacks[name](ctx, c.message)
}

// Value computes the value of a variable once.
func (c *messageCall[M]) Value(slot int) (any, error) {
	v := &c.values[slot]
	if !v.computed {
		v.computed = true
		v.value, v.err = c.variables[slot].Value(c.message)
	}
	return v.value, v.err
}

func (c *messageCall[M]) Items(slot int, name string) ([]string, error) {
	if item, ok := c.variables[slot].Items(c.message)[name]; ok {
		return []string{item}, nil
	}
	return nil, nil
}
