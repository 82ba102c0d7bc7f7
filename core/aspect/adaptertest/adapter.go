package adaptertest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Adapter serves programs of one endpoint, which pays an order, and calls them.
type Adapter struct {
	// Endpoint is the endpoint, as rules name it.
	Endpoint ruleset.Endpoint

	// ID and Tenant are expressions for what a [Call] has, without #{}.
	ID, Tenant string

	// Response is the response of a rule with the text "later" in it, "" where null is
	// answered without one.
	Response string

	// Code is the half of a status that clients see.
	Code func(s failpolicy.Status) int

	// Streams says that the handler answers through a stream, which fails once the lock is
	// lost.
	Streams bool

	// Declares says that the endpoint may have rules by itself: the options of a .proto file, or rules
	// in Go. The rules of a set then change these, field by field.
	Declares bool

	// Start serves a program until the test ends, with a recovery around the guard that
	// answers with what a handler has panicked with.
	Start func(tb testing.TB, p *Program) (Server, error)
}

// Program is what an adapter has to serve.
type Program struct {
	Locks    *core.Client
	InCode   []ruleset.Rule   // the rules that are put on the endpoint in Go
	Declared []ruleset.Rule   // those over which Set is laid; nil unless [Adapter].Declares
	Set      ruleset.Provider // has those that name it; it is empty where InCode has any

	// Pay is the handler: it answers with the text, or fails.
	Pay func(ctx context.Context, id string) (string, error)

	// Queue is the fallback "queue".
	Queue func(ctx context.Context, id string) (string, error)
}

// Server is a program that runs.
type Server struct {
	// Aspect and Check are the guard's.
	Aspect *aspect.Aspect
	Check  func() error

	// Hold is the adapter's: the lock under which the handler of ctx runs.
	Hold func(ctx context.Context) *core.Hold

	// Call calls the endpoint. [ServeHTTP] sets it for adapters of HTTP.
	Call func(ctx context.Context, c Call) Answer

	post func(ctx context.Context, c Call, body io.Reader) Answer // of HTTP
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
