package consumer

import (
	"errors"

	"github.com/interlock-go/interlock/keyexpr"
)

// Message is a message in the shape that clients of Kafka have it.
type Message struct {
	Topic     string
	Partition int
	Key       string
	Headers   map[string][]string
	Value     []byte
}

// The places of the variables in the schema.
const (
	slotTopic = iota
	slotPartition
	slotKey
	slotHeader
	slotValue
)

func newSchema() (*keyexpr.Schema, error) {
	return keyexpr.NewSchema(
		keyexpr.Variable{Name: "topic", Type: keyexpr.TypeFor[string]()},
		keyexpr.Variable{Name: "partition", Type: keyexpr.TypeFor[int]()},
		keyexpr.Variable{Name: "key", Type: keyexpr.TypeFor[string]()},
		keyexpr.Variable{Name: "header", Keyed: &keyexpr.Keyed{Noun: "header", Open: true, Repeatable: true}},
		keyexpr.Variable{Name: "value", Type: keyexpr.AnyType()},
	)
}

// env are the variables of one message.
type env struct {
	message *Message
	value   any // decoded when it is asked for
}

// Value implements [keyexpr.Env].
func (e *env) Value(slot int) (any, error) {
	switch slot {
	case slotTopic:
		return e.message.Topic, nil
	case slotPartition:
		return e.message.Partition, nil
	case slotKey:
		return e.message.Key, nil
	case slotValue:
		return e.decode()
	default:
		return nil, errors.New("there is no such variable")
	}
}

// decode decodes the value once. That it is no JSON is the sender's mistake.
func (e *env) decode() (any, error) {
	if e.value != nil || len(e.message.Value) == 0 {
		return e.value, nil
	}
	value, err := keyexpr.DecodeJSON(e.message.Value)
	if err != nil {
		return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: "needs a value of JSON", Err: err}
	}
	e.value = value
	return value, nil
}

// Items implements [keyexpr.Env]: the headers.
func (e *env) Items(_ int, name string) ([]string, error) { return e.message.Headers[name], nil }
