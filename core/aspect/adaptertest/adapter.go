package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Adapter describes an adapter under test. [Run] uses it to serve programs with a single endpoint, whose handler pays an
// order, and to call the endpoint.
type Adapter struct {
	// Endpoint is the endpoint with the name that rules use.
	Endpoint ruleset.Endpoint

	// ID and Tenant are the expressions, without #{}, that read the fields of a [Call].
	ID, Tenant string

	// Response is a value for the field Response of a rule. It must contain the string "later". If it is empty, the
	// adapter does not support Response.
	Response string

	// Code returns the status code that clients of the transport see: s.HTTP or s.GRPC.
	Code func(s failpolicy.Status) int

	// Streams reports whether the handler answers through a stream. Such a stream has to fail when the lock is lost.
	Streams bool

	// Declares reports whether the endpoint can declare rules, for example in options of a .proto file or in Go. The rules
	// of a set override declared rules field by field.
	Declares bool

	// Unaware reports whether the server does not notice that a caller leaves. The server of fasthttp is an example. A call
	// then waits until its wait time ends.
	Unaware bool

	// Start serves p until the test ends. It puts a recovery around the guard. If the handler panics, the recovery answers
	// with the value of the panic.
	Start func(tb testing.TB, p *Program) (Server, error)
}

// Program is the program that an adapter serves.
type Program struct {
	Locks    *core.Client
	InCode   []ruleset.Rule   // the rules that the program puts on the endpoint in Go
	Declared []ruleset.Rule   // the rules that the endpoint declares; nil unless [Adapter].Declares
	Set      ruleset.Provider // the rules that name the endpoint; empty if InCode contains any

	// Pay is the handler. The adapter answers with the string, or with the error.
	Pay func(ctx context.Context, id string) (string, error)

	// Queue is the fallback "queue".
	Queue func(ctx context.Context, id string) (string, error)
}

// Server is a running [Program].
type Server struct {
	// Aspect is the Aspect of the guard.
	Aspect *aspect.Aspect

	// Check calls the guard's Check with the endpoint.
	Check func() error

	// Hold is the function of the adapter that returns the lock under which the handler of ctx runs.
	Hold func(ctx context.Context) *core.Hold

	// Call calls the endpoint. For HTTP, [ServeHTTP] or [CallHTTP] sets it.
	Call func(ctx context.Context, c Call) Answer

	post func(ctx context.Context, c Call, body io.Reader) Answer // nil unless ServeHTTP sets it
}

// Call is one call of the endpoint.
type Call struct {
	ID     string // the id of the order
	Tenant string // "" sends no tenant
}

// Answer is the answer that a client gets.
type Answer struct {
	OK    bool          // the call succeeded
	Code  int           // the status, unless OK
	Text  string        // the string that the handler or the fallback returned
	Cause string        // the type or reason by which a client distinguishes causes
	Retry time.Duration // the hint when to try again; 0 if the places in which the transport sends it differ
	Lock  string        // "skipped", "null", "unlocked", or ""
	Token string        // the fencing token, "" if there is none
	All   string        // everything that a client can read, including headers
}

// check returns an error that names the missing required fields.
func (a *Adapter) check() error {
	return missing("Adapter",
		field{"Endpoint", !a.Endpoint.IsZero(), "the endpoint, as rules name it"},
		field{"ID", a.ID != "", "an expression for Call.ID, without #{}"},
		field{"Tenant", a.Tenant != "", "an expression for Call.Tenant, without #{}"},
		field{"Code", a.Code != nil, "a function that returns the status code that clients see"},
		field{"Start", a.Start != nil, "a function that serves a program until the test ends"},
	)
}

// check returns an error that names the missing required fields.
func (s *Server) check() error {
	return missing("Server",
		field{"Aspect", s.Aspect != nil, "the Aspect of the guard"},
		field{"Check", s.Check != nil, "the Check of the guard"},
		field{"Hold", s.Hold != nil, "a function that returns the lock of a handler"},
		field{"Call", s.Call != nil, "a function that calls the endpoint; ServeHTTP and CallHTTP set it"},
	)
}

// field is a required field of a struct.
type field struct {
	name  string
	isSet bool
	write string // the value to set, in words
}

// missing returns an error that names each field that is not set.
func missing(typeName string, fields ...field) error {
	var errs []error
	for _, f := range fields {
		if !f.isSet {
			errs = append(errs, fmt.Errorf("adaptertest: %s.%s is missing: set it to %s", typeName, f.name, f.write))
		}
	}
	return errors.Join(errs...)
}
