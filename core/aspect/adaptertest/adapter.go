package adaptertest

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Adapter serves programs of one endpoint, which pays an order, and calls them.
type Adapter interface {
	// Endpoint is the endpoint, as rules name it.
	Endpoint() ruleset.Endpoint

	// ID and Tenant are expressions for what a [Call] has, without #{}.
	ID() string
	Tenant() string

	// Code is the half of a status that clients see.
	Code(s failpolicy.Status) int

	// Start serves a program until the test ends, with a recovery around the guard that
	// answers with what a handler has panicked with.
	Start(tb testing.TB, p *Program) (Server, error)
}

// Streamer may be implemented by an [Adapter] whose handler answers through a stream,
// which fails once the lock is lost.
type Streamer interface {
	Streams() bool
}

// Responder may be implemented by an [Adapter] that answers null with the response of a
// rule: Response is one with the text "later" in it, "" where the endpoint has none.
type Responder interface {
	Response() string
}

// Declarer may be implemented by an [Adapter] whose endpoints may have rules by themselves,
// over which those of a set are laid: the options of a .proto file, or rules that are put
// on an endpoint in Go.
type Declarer interface {
	Declares() bool
}

// Program is what an adapter has to serve.
type Program struct {
	Locks    *core.Client
	InCode   []ruleset.Rule   // the rules that are put on the endpoint in Go
	Declared []ruleset.Rule   // those over which Set is laid; nil without a [Declarer]
	Set      ruleset.Provider // has those that name it; it is empty where InCode has any

	// Pay is the handler: it answers with the text, or fails.
	Pay func(ctx context.Context, id string) (string, error)

	// Queue is the fallback "queue".
	Queue func(ctx context.Context, id string) (string, error)
}

// Server is a program that runs.
type Server interface {
	// Call calls the endpoint.
	Call(ctx context.Context, c Call) Answer
	// Check is the guard's.
	Check() error
	// Aspect is the guard's.
	Aspect() *aspect.Aspect
	// Hold is the adapter's: the lock under which the handler of ctx runs.
	Hold(ctx context.Context) *core.Hold
}

// Call is one call.
type Call struct {
	ID     string // of the order
	Tenant string // "" sends none
}

// Answer is what a client gets.
type Answer struct {
	OK    bool          // a success
	Code  int           // if not: the status
	Text  string        // what the handler has answered
	Cause string        // the type or reason by which a client tells causes apart
	Retry time.Duration // the hint when to try again, 0 unless it is there in each form that the transport has
	Lock  string        // "skipped", "null", "unlocked", or ""
	Token string        // the fencing token, "" without
	All   string        // everything there is to read, headers included
}
