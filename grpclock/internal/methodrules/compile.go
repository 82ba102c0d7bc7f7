package methodrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/internal/protovars"
)

// compiler compiles the rules of one method.
type compiler struct {
	*Config
	aspect   *aspect.Aspect
	endpoint ruleset.Endpoint
	rules    []*ruleset.Resolved
	method   *Method
	request  protoreflect.MessageDescriptor // the type of req; nil if the rules have no req
	errs     []error
}

// compile compiles the rules of a method. It returns nils for a method without rules.
func compile(config *Config, a *aspect.Aspect, k Key, rules []*ruleset.Resolved) (*aspect.Point, *Method, error) {
	if len(rules) == 0 {
		return nil, nil, nil
	}
	method := &Method{shape: k.Shape, descriptor: config.describe(k.Path), responses: make([]proto.Message, len(rules))}
	c := &compiler{Config: config, aspect: a, endpoint: ruleset.GRPC(k.Path), rules: rules, method: method}
	if method.descriptor != nil && !c.serverFirst[k.Path] {
		c.request = method.descriptor.Input()
	}
	point := c.point()
	for i, r := range rules {
		c.checkReply(r)
		c.checkFallbackTypes(r)
		method.responses[i] = c.response(r)
	}
	return point, method, errors.Join(c.errs...)
}

func (c *compiler) reportf(r *ruleset.Resolved, field, format string, args ...any) {
	c.errs = append(c.errs, r.Problem(field, fmt.Sprintf(format, args...)))
}

// point compiles the keys and conditions.
func (c *compiler) point() *aspect.Point {
	m := c.method
	variables, err := protovars.New(protovars.Config{Request: c.request, Registered: c.registered})
	if err != nil {
		c.reportf(c.rules[0], "", "%v", err)
		return nil
	}
	m.Variables = variables
	point, err := c.aspect.Prepare(aspect.Site{
		Endpoint: c.endpoint, Schema: variables.Schema(), Fallbacks: c.fallbackNames(m.shape),
	}, c.rules...)
	if err != nil {
		c.errs = append(c.errs, err)
		c.explainRequest()
		return nil
	}
	m.Reads = point.Uses(Request) && slices.ContainsFunc(c.rules, func(r *ruleset.Resolved) bool { return !r.Disabled })
	return point
}

// explainRequest adds, for each rule that uses req, a problem with the reason why req is unknown.
func (c *compiler) explainRequest() {
	if c.request != nil {
		return
	}
	reason := "no descriptor of " + c.endpoint.Path + " is registered, so its expressions cannot use req: import its generated package, or give its file to WithDescriptors"
	if c.method.descriptor != nil {
		reason = "WithServerFirst leaves req out for " + c.endpoint.Path + ", because its server may send before it receives: use metadata"
	}
	for _, r := range c.rules {
		if strings.Contains(strings.Join(append(r.Templates(), r.When), " "), Request+".") {
			c.reportf(r, "", "%s", reason)
		}
	}
}

// checkReply reports a rule whose strategy needs an empty reply of an unknown type.
func (c *compiler) checkReply(r *ruleset.Resolved) {
	policy := r.Policy()
	replies, _ := policy.Replies()
	switch {
	case !replies || c.method.descriptor != nil:
	case c.method.shape.unregistered:
		c.reportf(r, "", "it is not known whether callers of %s expect a reply, which its strategy has to give: the method is not registered "+
			"and has no descriptor: import the generated package, give its file to WithDescriptors, or choose another strategy", c.endpoint.Path)
	case c.method.shape.replies():
		c.reportf(r, "", "its strategy answers with an empty reply, but no descriptor of %s is registered: "+
			"import its generated package, or give its file to WithDescriptors", c.endpoint.Path)
	}
}

// response parses the response of a rule. It returns nil for a rule without one.
func (c *compiler) response(r *ruleset.Resolved) proto.Message {
	d := c.method.descriptor
	switch {
	case r.Response == "" || strings.TrimSpace(r.Response) == "null":
		return nil
	case d == nil && c.method.shape.unregistered:
		return nil // reported by checkReply
	case !c.method.callerShape().replies():
		c.reportf(r, "response", "%s is %s and ends without a reply: remove it", c.endpoint.Path, c.method.callerShape())
		return nil
	case d == nil:
		return nil // reported by checkReply
	}
	reply := newMessage(d.Output())
	if err := protojson.Unmarshal([]byte(r.Response), reply); err != nil {
		c.reportf(r, "response", "not a %s: %s", d.Output().FullName(), plainText(err))
		return nil
	}
	return reply
}

// plainText returns the message of an error of package proto with plain spaces. Package proto randomly uses
// no-break spaces.
func plainText(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// checkFallbackTypes compares the types of a registered fallback with the types of the method.
func (c *compiler) checkFallbackTypes(r *ruleset.Resolved) {
	policy := r.Policy()
	f, ok := c.Fallbacks[r.Fallback]
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
