package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// answer is the effect of one rule on a request.
type answer struct {
	rule    *ruleset.Resolved
	values  []value // the values that the key and the condition of the rule read
	applies bool    // the condition is true, or the rule has none
	keys    []string
	err     error // the reason that the request yields no key
}

// value is the value of a variable in a request.
type value struct{ name, text string }

// answersOf evaluates the rules of a site for a request. accept may refuse the value of a variable.
func answersOf(at aspect.Site, rules []*ruleset.Resolved, p *aspect.Preview, env keyexpr.Env, accept func(variable string) error) []answer {
	list := make([]answer, len(rules))
	for i, r := range rules {
		seen := &recorder{env: env, names: at.Schema.Variables(), accept: accept}
		a := answer{rule: r}
		if a.applies, a.err = p.Applies(i, seen); a.err == nil && a.applies {
			a.keys, a.err = p.Names(i, seen)
		}
		a.values = seen.values
		list[i] = a
	}
	return list
}

// reason returns an explanation, for people, of why the rule yields no key.
func (a *answer) reason() string {
	failure, ok := errors.AsType[*keyexpr.EvalError](a.err)
	if !ok {
		return a.err.Error()
	}
	text := failure.Detail
	if failure.Subject != "" {
		text = failure.Subject + " " + text
	}
	if failure.Err != nil {
		text += ": " + failure.Err.Error()
	}
	serverOnly := failure.Subject == "client_ip" || failure.Subject == "peer"
	if failure.Reason == keyexpr.ReasonUnset || serverOnly {
		text += fmt.Sprintf(" (give it with --var %s=…)", failure.Subject)
	}
	return text
}

// recorder is the [keyexpr.Env] of a request. It records the values that expressions read.
type recorder struct {
	env    keyexpr.Env
	names  []string // the names of variables, by slot
	accept func(variable string) error
	values []value
}

func (r *recorder) Value(slot int) (any, error) {
	v, err := r.env.Value(slot)
	if err == nil && v != nil {
		err = r.accept(r.names[slot])
	}
	if err != nil {
		return nil, err
	}
	r.note(r.names[slot], text(v))
	return v, nil
}

func (r *recorder) Items(slot int, key string) ([]string, error) {
	values, err := r.env.Items(slot, key)
	name := r.names[slot] + selector(key)
	switch {
	case err != nil:
	case len(values) == 0:
		r.note(name, missing)
	case len(values) == 1:
		r.note(name, text(values[0]))
	default:
		for i, v := range values {
			r.note(fmt.Sprintf("%s[%d]", name, i), fmt.Sprintf("%s (of %d)", text(v), len(values)))
		}
	}
	return values, err
}

// note records a value, once for each name.
func (r *recorder) note(name, text string) {
	for _, v := range r.values {
		if v.name == name {
			return
		}
	}
	r.values = append(r.values, value{name, text})
}

const missing = "(missing)"

// text returns a value on one line.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return missing
	case string:
		if v == "" || strconv.Quote(v) != `"`+v+`"` {
			return strconv.Quote(v)
		}
		return v
	case protoreflect.Message:
		document, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(v.Interface())
		if err != nil {
			return short(nil, err)
		}
		return short(json.Marshal(json.RawMessage(document))) // json.Marshal also removes the varying spaces
	default:
		return short(json.Marshal(v))
	}
}

// maxText is the number of characters of a body that are shown.
const maxText = 200

func short(document []byte, err error) string {
	if err != nil {
		return "(" + err.Error() + ")"
	}
	if runes := []rune(string(document)); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return string(document)
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// selector returns the notation for a name after a variable.
func selector(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}
