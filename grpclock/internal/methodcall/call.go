// Package methodcall runs calls of protobuf methods under their rules, for the servers of any library: a
// library passes each call as a [UnaryCall] or a [StreamCall].
//
// It handles messages and streams; package aspect takes and releases the locks. It depends on neither
// grpc-go nor Connect, nor on the way in which rules are declared: package methodrules compiles them.
// Packages grpclock and connectlock call it.
//
// Its files, each of which uses only those before it: answer, passage, messages, lockedstream, ahead,
// call, unary, stream.
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

	// Own marks the answer as an answer of the guard instead of the handler. No cache may keep it.
	Own()

	// Hint adds to an error the time after which the caller should try again.
	Hint(after time.Duration)

	// Error converts an answer to an error of the library. The error unwraps to the reason.
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

// guardedCall is the part that unary calls and streams share: a call, the rules of its method, and its
// answers. It supplies the variables of the call.
type guardedCall struct {
	Call
	methods *methodrules.Methods
	entry   *methodrules.Entry
	ctx     context.Context //nolint:containedctx // lives as long as the call
	passage passage
}

// Registered computes a registered variable.
func (g *guardedCall) Registered(i int) (any, error) { return g.methods.Config.Values[i](g.ctx) }

// id returns the identity of the call at this guard. request is nil for streams.
func (g *guardedCall) id(request any) passageID {
	return passageID{guard: g.methods, method: g.Method(), request: request, identity: g.Identity()}
}

// brokenError returns the error of a method whose rules do not compile.
func (g *guardedCall) brokenError() error {
	g.entry.WarnOnce(g.methods.Aspect, g.entry.Err)
	g.Own()
	return g.Error(Broken(g.entry.Err))
}

// translate converts a MisconfiguredError to an error of the library. It returns other errors unchanged.
func (g *guardedCall) translate(err error) error {
	if bare, ok := err.(*methodrules.MisconfiguredError); ok { //nolint:errorlint // an error that wraps it is already an error of the library
		return g.Error(Broken(bare.Reason))
	}
	return err
}

// finish returns the error of a call. If the call has shown that the method is misconfigured, finish
// notifies the observers.
func (g *guardedCall) finish(err error) error {
	if e, ok := errors.AsType[*methodrules.MisconfiguredError](err); ok {
		g.entry.WarnOnce(g.methods.Aspect, e.Reason)
	}
	return err
}

// mark adds the lock status to the answer, unless a guard around this one added the same status.
func (g *guardedCall) mark(status string) {
	if status != failpolicy.MarkUnlocked {
		g.Own()
	}
	if g.passage.find(func(p *passage) bool { return p.status == status }) == nil {
		g.passage.status = status
		g.Header(failpolicy.StatusHeader, status)
	}
}

// handlerContext returns the context of the handler. It adds the lock status and the fencing token to the
// answer.
func (g *guardedCall) handlerContext(ctx context.Context, grant aspect.Grant) context.Context {
	if grant.Unlocked == aspect.UnlockedProceed {
		g.mark(failpolicy.MarkUnlocked)
	}
	if grant.Token != 0 && g.methods.Config.ShowToken {
		g.showToken(grant.Token)
	}
	g.passage.hold = grant.Hold
	return g.passage.attach(ctx)
}

// showToken adds a fencing token to the answer, unless a guard around this one added the same token.
func (g *guardedCall) showToken(token int64) {
	if g.passage.find(func(p *passage) bool { return p.token == token }) == nil {
		g.passage.token = token
		g.Header(failpolicy.TokenHeader, strconv.FormatInt(token, 10))
	}
}

// refuse returns the error for a refused caller.
func (g *guardedCall) refuse(refused *aspect.RefusedError) error {
	g.Own()
	if refused.RetryAfter > 0 {
		g.Hint(refused.RetryAfter)
	}
	return g.Error(Refusal(refused))
}
