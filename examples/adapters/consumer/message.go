package consumer

import (
	"errors"

	"github.com/interlock-go/interlock/keyexpr"
)

// Message is a message with the fields of a Kafka message.
type Message struct {
	Topic     string
	Partition int
	Key       string
	Headers   map[string][]string
	Value     []byte
}

// The positions of the variables in the schema.
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

// env supplies the variables of a message.
type env struct {
	message *Message
	value   any // decoded on demand
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
		return nil, errors.New("unknown variable")
	}
}

// decode decodes the value once. A value that is not JSON is a mistake of the sender.
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

// Items implements [keyexpr.Env] for the headers.
func (e *env) Items(_ int, name string) ([]string, error) { return e.message.Headers[name], nil }
