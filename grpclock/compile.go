package grpclock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/protorules"
	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// compiler compiles the rules of one method.
type compiler struct {
	guard    *Guard
	endpoint ruleset.Endpoint
	method   *method
	request  protoreflect.MessageDescriptor // what req is; nil where there is none
	problems []*ruleset.Problem
}

// compile makes the method of a key under a set: nil without rules, and one with an
// err where they cannot work.
func (g *Guard) compile(set *ruleset.Set, k methodKey) *method {
	d := describe(k.path, g.config.descriptors)
	options, problems := optionsOf(d)
	c := &compiler{guard: g, endpoint: ruleset.GRPC(k.path), method: &method{shape: k.shape, descriptor: d}, problems: problems}
	if d != nil && !g.config.serverFirst[k.path] {
		c.request = d.Input()
	}
	rules, err := set.Overlay(c.endpoint, options...)
	if err != nil {
		c.adopt(err)
	} else if len(rules) > 0 {
		c.compile(rules)
	}
	c.method.problems, c.method.err = c.problems, ruleset.Invalid(c.problems...)
	if c.method.err == nil && c.method.point == nil {
		return nil
	}
	return c.method
}

// optionsOf are the rules that the .proto file declares around a method.
func optionsOf(d protoreflect.MethodDescriptor) ([]ruleset.Declared, []*ruleset.Problem) {
	if d == nil {
		return nil, nil
	}
	return protorules.Of(d)
}

// compile compiles the rules.
func (c *compiler) compile(rules []*ruleset.Resolved) {
	c.method.responses = make([]proto.Message, len(rules))
	c.compilePoint(rules)
	for i, r := range rules {
		c.checkReply(r)
		c.checkFallback(r)
		c.method.responses[i] = c.response(r)
	}
}

func (c *compiler) reportf(r *ruleset.Resolved, field, format string, args ...any) {
	c.problems = append(c.problems, r.Problem(field, fmt.Sprintf(format, args...)))
}

// compilePoint compiles keys and conditions.
func (c *compiler) compilePoint(rules []*ruleset.Resolved) {
	m := c.method
	variables, err := protovars.New(protovars.Config{Request: c.request, Registered: c.guard.config.registered()})
	if err != nil {
		c.reportf(rules[0], "", "%v", err)
		return
	}
	site := aspect.Site{Endpoint: c.endpoint, Schema: variables.Schema(), Fallbacks: c.guard.fallbackNames(m.shape)}
	m.variables = variables
	m.point, err = c.guard.aspect.Prepare(site, rules...)
	if err != nil {
		c.adopt(err)
		c.explainRequest(rules)
		return
	}
	m.reads = m.point.Uses(requestVariable) && slices.ContainsFunc(rules, func(r *ruleset.Resolved) bool { return !r.Disabled })
}

// adopt takes over the problems that core/aspect found.
func (c *compiler) adopt(err error) {
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		c.problems = append(c.problems, invalid.Problems...)
		return
	}
	c.problems = append(c.problems, &ruleset.Problem{Endpoint: c.endpoint, Message: err.Error()})
}

// explainRequest adds why req is unknown, where that may be the mistake.
func (c *compiler) explainRequest(rules []*ruleset.Resolved) {
	if c.request != nil {
		return
	}
	why := "no descriptor of " + c.endpoint.Path + " is registered, so there is no req: import its generated package, or give its file to WithDescriptors"
	if c.method.descriptor != nil {
		why = "WithServerFirst leaves req out for " + c.endpoint.Path + ", because its server may send before it receives: use metadata"
	}
	for _, r := range rules {
		if strings.Contains(strings.Join(append(r.Templates(), r.When), " "), requestVariable+".") {
			c.reportf(r, "", "%s", why)
		}
	}
}

// checkReply reports a rule that needs an empty reply of an unknown type.
func (c *compiler) checkReply(r *ruleset.Resolved) {
	policy := r.Policy()
	empty := policy.Uses(failpolicy.Skip) || policy.Uses(failpolicy.NullResponse)
	switch {
	case !empty || c.method.descriptor != nil:
	case c.method.shape.unregistered:
		c.reportf(r, "", "nothing tells whether callers of %s expect a reply, which skip and null_response have to give: it is not registered "+
			"and has no descriptor: import the generated package, give its file to WithDescriptors, or choose another strategy", c.endpoint.Path)
	case c.method.shape.replies():
		c.reportf(r, "", "skip and null_response answer with an empty reply, but no descriptor of %s is registered: "+
			"import its generated package, or give its file to WithDescriptors", c.endpoint.Path)
	}
}

// response parses the reply of a rule, nil if it has none.
func (c *compiler) response(r *ruleset.Resolved) proto.Message {
	d := c.method.descriptor
	switch {
	case r.Response == "" || strings.TrimSpace(r.Response) == "null":
		return nil
	case d == nil && c.method.shape.unregistered:
		return nil // reported by checkReply
	case !c.method.called().replies():
		c.reportf(r, "response", "%s is %s and ends without a reply: remove it", c.endpoint.Path, c.method.called())
		return nil
	case d == nil:
		return nil // reported by checkReply
	}
	reply := newMessage(d.Output())
	if err := protojson.Unmarshal([]byte(r.Response), reply); err != nil {
		c.reportf(r, "response", "no %s: %s", d.Output().FullName(), plain(err))
		return nil
	}
	return reply
}

// plain is the text of an error of package proto, which varies its spaces.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// checkFallback compares the types of a registered fallback with the method's.
func (c *compiler) checkFallback(r *ruleset.Resolved) {
	policy := r.Policy()
	f, ok := c.guard.config.unaryFallbacks[r.Fallback]
	if !ok || !policy.Uses(failpolicy.Fallback) || !c.method.shape.unary() || c.method.descriptor == nil {
		return
	}
	in, out := c.method.descriptor.Input().FullName(), c.method.descriptor.Output().FullName()
	if (f.request != "" && f.request != in) || (f.reply != "" && f.reply != out) {
		c.reportf(r, "fallback", "%q is func(%s) %s: %s takes %s and replies %s",
			r.Fallback, anyMessage(f.request), anyMessage(f.reply), c.endpoint.Path, in, out)
	}
}

func anyMessage(name protoreflect.FullName) string {
	if name == "" {
		return "any message"
	}
	return string(name)
}

// fallbackNames are the fallbacks that can run on methods of a shape.
func (g *Guard) fallbackNames(s shape) []string {
	if s.unary() {
		return slices.Sorted(maps.Keys(g.config.unaryFallbacks))
	}
	return slices.Sorted(maps.Keys(g.config.streamFallbacks))
}
