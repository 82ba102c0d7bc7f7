// Package methodcall runs calls of protobuf methods under their rules, for the servers
// of any library: a library brings each call as a [UnaryCall] or a [StreamCall].
package methodcall

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Call is one call, as the library of the server has it.
type Call interface {
	// Method is the full method, "/pkg.Service/Method".
	Method() string

	// Metadata gives the values of a lower-case key.
	Metadata(key string) []string

	// Peer is the caller's address without a port.
	Peer() string

	// Identity is the same for all guards that the call passes, and comparable.
	Identity() any

	// Header adds a header to the answer.
	Header(key, value string)

	// Own notes that the guard answers instead of the handler: no cache may keep that answer.
	Own()

	// Hint tells the caller when another attempt makes sense, beside the error.
	Hint(after time.Duration)

	// Error is an answer as an error, which leads to its reason.
	Error(a *Answer) error

	// Canceled recognises a cancellation in the library's words.
	Canceled(err error) bool
}

// Host is an address without its port.
func Host(address string) string {
	if bare, _, err := net.SplitHostPort(address); err == nil {
		return bare
	}
	return address
}

// guarded is a call under the rules of its method: what unary calls and streams have in
// common. It tells the variables about the call.
type guarded struct {
	Call
	methods *methodrules.Methods
	entry   *methodrules.Entry
	ctx     context.Context //nolint:containedctx // lives as long as the call
	passage passage
}

// Registered computes a registered variable.
func (g *guarded) Registered(i int) (any, error) { return g.methods.Config.Values[i](g.ctx) }

// broken is the error of a method that cannot work.
func (g *guarded) broken() error {
	g.entry.WarnOnce(g.methods.Aspect, g.entry.Err)
	g.Own()
	return g.Error(Broken(g.entry.Err))
}

// worded puts the error of a call that cannot work into the library's words.
func (g *guarded) worded(err error) error {
	if bare, ok := err.(*methodrules.MisconfiguredError); ok { //nolint:errorlint // a wrapped one has them
		return g.Error(Broken(bare.Reason))
	}
	return err
}

// ended passes on how a call ended, and tells observers of a method of which only a call
// shows that it cannot work.
func (g *guarded) ended(err error) error {
	if why, ok := errors.AsType[*methodrules.MisconfiguredError](err); ok {
		g.entry.WarnOnce(g.methods.Aspect, why.Reason)
	}
	return err
}

// marked marks the answer, unless a guard outside has done so.
func (g *guarded) marked(status string) {
	if status != failpolicy.MarkUnlocked {
		g.Own()
	}
	if g.passage.innermost(func(p *passage) bool { return p.status == status }) == nil {
		g.passage.status = status
		g.Header(failpolicy.StatusHeader, status)
	}
}

// handler makes the context of the handler, and shows what it runs with.
func (g *guarded) handler(ctx context.Context, grant aspect.Grant) context.Context {
	if grant.Unlocked == aspect.UnlockedProceed {
		g.marked(failpolicy.MarkUnlocked)
	}
	if grant.Token != 0 && g.methods.Config.ShowToken {
		g.showToken(grant.Token)
	}
	g.passage.hold = grant.Hold
	return g.passage.with(ctx)
}

// showToken adds a fencing token to the answer, unless a guard outside has done so.
func (g *guarded) showToken(token int64) {
	if g.passage.innermost(func(p *passage) bool { return p.token == token }) == nil {
		g.passage.token = token
		g.Header(failpolicy.TokenHeader, strconv.FormatInt(token, 10))
	}
}

// refused is the error for a refused caller.
func (g *guarded) refused(refused *aspect.RefusedError) error {
	g.Own()
	if refused.RetryAfter > 0 {
		g.Hint(refused.RetryAfter)
	}
	return g.Error(Refusal(refused))
}
