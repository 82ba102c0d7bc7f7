package grpclock

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// requestVariable is the name of the message in expressions.
const requestVariable = "req"

// method is one method with its compiled rules. It never changes, but for what was told.
type method struct {
	shape      shape
	descriptor protoreflect.MethodDescriptor // nil if it is not known
	variables  *protovars.Variables
	point      *aspect.Point
	responses  []proto.Message // per rule, nil without one
	reads      bool            // a rule in force reads the message
	problems   []*ruleset.Problem
	err        error // the problems, if there are any: it cannot work

	warned sync.Once // observers know that it cannot work
}

// rules are the rules of a method that works, nil where there are none.
func (m *method) rules() []*ruleset.Resolved {
	if m == nil || m.point == nil {
		return nil
	}
	return m.point.Rules()
}

// called is the shape that callers give to the method: that of its descriptor. A proxy
// may have registered it as streams, or not at all.
func (m *method) called() shape {
	if d := m.descriptor; d != nil {
		return shape{client: d.IsStreamingClient(), server: d.IsStreamingServer()}
	}
	return m.shape
}

// announce tells observers of the rules.
func (m *method) announce() {
	if m != nil && m.err == nil {
		m.point.Announce()
	}
}

// retract tells observers of the rules that next, which takes its place, does not
// have.
func (m *method) retract(next *method) {
	switch {
	case m == nil || m.err != nil:
	case next == nil:
		m.point.Retract(nil)
	default:
		m.point.Retract(next.point)
	}
}

// emptyReply is an empty message of the method's output type.
func (m *method) emptyReply() any { return newMessage(m.descriptor.Output()) }

// nullReply is the response of a rule, or an empty message.
func (m *method) nullReply(rule int) any {
	if response := m.responses[rule]; response != nil {
		return proto.Clone(response)
	}
	return m.emptyReply()
}

// lossOf describes a loss while the handler still runs. Of several rules it is told
// as that of the last one with a lock; the answer to the caller is exact.
func (m *method) lossOf(cause error) *aspect.RefusedError {
	rule := lastInForce(m.point.Rules())
	refused := &aspect.RefusedError{
		Rule: rule.Name, Cause: failpolicy.Lost, Status: rule.Status.Status(failpolicy.Lost),
		Message: rule.Message, Reason: cause,
	}
	if refused.Message == "" {
		refused.Message = failpolicy.Lost.Title()
	}
	return refused
}

// lastInForce is the last rule that takes a lock; without one the last of all.
func lastInForce(rules []*ruleset.Resolved) *ruleset.Resolved {
	for _, r := range slices.Backward(rules) {
		if !r.Disabled && !r.DryRun {
			return r
		}
	}
	return rules[len(rules)-1]
}
