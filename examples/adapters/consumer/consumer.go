// Package consumer handles the messages of partitions, for example of Kafka, under the locks of declared rules. A rule names a
// topic. Its key reads the variables topic, partition, key, header and value, which is JSON:
//
//	rules:
//	  - func: topic/orders.paid
//	    key: "order:#{key}"
//
// A partition keeps the order of its messages, so a broker does not deliver one of them later. A message whose lock is taken
// waits at the head of its partition: see [Queue.Consume]. With a real broker, pause the partition during that wait, or keep
// the wait below the session timeout.
package consumer

import (
	"context"
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Message is a message with the fields of a Kafka message.
type Message struct {
	Topic     string
	Partition int
	Key       string
	Headers   map[string]string
	Value     []byte
}

// Handler handles a message.
type Handler = func(ctx context.Context, m *Message) error

// Topic is a topic that a consumer handles.
type Topic struct {
	Handler Handler
	Value   any // a value of the Go type of the messages' values; nil if any document is possible
}

// Guard handles messages under the rules of their topics. It is safe for concurrent use.
type Guard struct {
	guard  *aspect.MessageGuard[*Message]
	topics map[string]Topic
}

// New returns a guard and checks the rules for topics. fallbacks may be nil. If rules have problems, the error lists all of
// them, and the guard refuses the messages of these rules. The guard follows reloads of rules.
func New(a *aspect.Aspect, rules ruleset.Provider, topics map[string]Topic, fallbacks map[string]Handler) (*Guard, error) {
	messages := aspect.Messages[*Message]{
		Prefix: "topic/", Noun: "topic", Payloads: map[string]any{}, Variables: variables,
		Fallbacks: fallbacks,
	}
	for name, topic := range topics {
		messages.Payloads[name] = topic.Value
	}
	guard, err := aspect.NewMessageGuard(a, rules, messages)
	if err != nil {
		return nil, err
	}
	return &Guard{guard, topics}, guard.Check()
}

// Handle runs the handler of a message once, under the rules of its topic.
func (g *Guard) Handle(ctx context.Context, m *Message) aspect.Outcome {
	topic, known := g.topics[m.Topic]
	if !known {
		return aspect.Outcome{Verdict: aspect.VerdictRan, Err: fmt.Errorf("consumer: topic %q has no handler", m.Topic)}
	}
	return g.guard.Run(ctx, m.Topic, m, topic.Handler)
}

func variables(value reflect.Type) []aspect.MessageVariable[*Message] {
	return []aspect.MessageVariable[*Message]{
		aspect.TextVariable("topic", func(m *Message) string { return m.Topic }),
		{
			Variable: keyexpr.Variable{Name: "partition", Type: keyexpr.TypeFor[int]()},
			Value:    func(m *Message) (any, error) { return m.Partition, nil },
		},
		aspect.TextVariable("key", func(m *Message) string { return m.Key }),
		aspect.HeaderVariable("header", func(m *Message) map[string]string { return m.Headers }),
		aspect.JSONVariable("value", value, func(m *Message) []byte { return m.Value }),
	}
}
