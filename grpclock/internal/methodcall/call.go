// Package methodcall runs calls of protobuf methods under their rules, for the servers of any library: a
// library passes each call as a [UnaryCall] or a [StreamCall].
//
// It knows messages, streams, and package aspect, which takes and releases the locks. It knows neither
// grpc-go nor Connect, and not how rules are declared: package methodrules has compiled them. Packages
// grpclock and connectlock call it.
//
// Its files, each of which uses only those before it: answer, passage, messages, lockedstream, call,
// unary, stream.
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

// Call is one call of a server library.
type Call interface {
	// Method returns the full method, "/pkg.Service/Method".
	Method() string

	// Metadata returns the values of a lower-case key.
	Metadata(key string) []string

	// Peer returns the address of the caller without a port.
	Peer() string

	// Identity returns a comparable value that is the same at all guards that the call passes.
	Identity() any

	// Header adds a header to the answer.
	Header(key, value string)

	// Own is called if the guard answers instead of the handler. No cache may keep that answer.
	Own()

	// Hint adds to an error when another attempt makes sense.
	Hint(after time.Duration)

	// Error returns an answer as an error of the library. The error unwraps to the reason.
	Error(a *Answer) error

	// Canceled reports whether an error of the library means that the call was canceled.
	Canceled(err error) bool
}

// Host returns an address without its port.
func Host(address string) string {
	if bare, _, err := net.SplitHostPort(address); err == nil {
		return bare
	}
	return address
}

// guarded is the part that unary calls and streams share: a call, the rules of its method, and its
// answers. It supplies the variables of the call.
type guarded struct {
	Call
	methods *methodrules.Methods
	entry   *methodrules.Entry
	ctx     context.Context //nolint:containedctx // lives as long as the call
	passage passage
}

// Registered computes a registered variable.
func (g *guarded) Registered(i int) (any, error) { return g.methods.Config.Values[i](g.ctx) }

// id identifies the call at this guard. request is nil for streams.
func (g *guarded) id(request any) passageID {
	return passageID{guard: g.methods, method: g.Method(), request: request, identity: g.Identity()}
}

// brokenError returns the error of a method that cannot work.
func (g *guarded) brokenError() error {
	g.entry.WarnOnce(g.methods.Aspect, g.entry.Err)
	g.Own()
	return g.Error(Broken(g.entry.Err))
}

// translate returns the error of a call that cannot work as an error of the library. It returns other
// errors unchanged.
func (g *guarded) translate(err error) error {
	if bare, ok := err.(*methodrules.MisconfiguredError); ok { //nolint:errorlint // a wrapped error is one of the library already
		return g.Error(Broken(bare.Reason))
	}
	return err
}

// finish returns the error of a call. If only the call has shown that the method cannot work, it
// notifies the observers.
func (g *guarded) finish(err error) error {
	if why, ok := errors.AsType[*methodrules.MisconfiguredError](err); ok {
		g.entry.WarnOnce(g.methods.Aspect, why.Reason)
	}
	return err
}

// mark adds the lock status to the answer, unless a guard around this one has added the same status.
func (g *guarded) mark(status string) {
	if status != failpolicy.MarkUnlocked {
		g.Own()
	}
	if g.passage.find(func(p *passage) bool { return p.status == status }) == nil {
		g.passage.status = status
		g.Header(failpolicy.StatusHeader, status)
	}
}

// handlerContext returns the context of the handler, and adds to the answer what the handler runs with.
func (g *guarded) handlerContext(ctx context.Context, grant aspect.Grant) context.Context {
	if grant.Unlocked == aspect.UnlockedProceed {
		g.mark(failpolicy.MarkUnlocked)
	}
	if grant.Token != 0 && g.methods.Config.ShowToken {
		g.showToken(grant.Token)
	}
	g.passage.hold = grant.Hold
	return g.passage.attach(ctx)
}

// showToken adds a fencing token to the answer, unless a guard around this one has added the same token.
func (g *guarded) showToken(token int64) {
	if g.passage.find(func(p *passage) bool { return p.token == token }) == nil {
		g.passage.token = token
		g.Header(failpolicy.TokenHeader, strconv.FormatInt(token, 10))
	}
}

// refuse returns the error for a refused caller.
func (g *guarded) refuse(refused *aspect.RefusedError) error {
	g.Own()
	if refused.RetryAfter > 0 {
		g.Hint(refused.RetryAfter)
	}
	return g.Error(Refusal(refused))
}
