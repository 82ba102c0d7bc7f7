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

// Adapter describes an adapter under test. The adapter serves programs with one endpoint, which pays an order, and calls
// that endpoint.
type Adapter struct {
	// Endpoint is the endpoint, as rules name it.
	Endpoint ruleset.Endpoint

	// ID and Tenant are expressions for the fields of a [Call], without #{}.
	ID, Tenant string

	// Response is a value for the Response of a rule that contains the string "later". "" means that the adapter does
	// not support Response.
	Response string

	// Code returns the part of a status that clients of the transport see.
	Code func(s failpolicy.Status) int

	// Streams reports that the handler answers through a stream, which fails when the lock is lost.
	Streams bool

	// Declares reports that the endpoint can declare rules: the options of a .proto file, or rules in Go. The rules of a
	// set then override these, field by field.
	Declares bool

	// Start serves a program until the test ends. It puts a recovery around the guard. The recovery answers with the
	// value of the handler's panic.
	Start func(tb testing.TB, p *Program) (Server, error)
}

// Program is the program that an adapter serves.
type Program struct {
	Locks    *core.Client
	InCode   []ruleset.Rule   // the rules that are put on the endpoint in Go
	Declared []ruleset.Rule   // the rules over which Set is laid; nil unless [Adapter].Declares
	Set      ruleset.Provider // the rules that name the endpoint; empty if InCode contains any

	// Pay is the handler. It answers with the string, or fails.
	Pay func(ctx context.Context, id string) (string, error)

	// Queue is the fallback "queue".
	Queue func(ctx context.Context, id string) (string, error)
}

// Server is a program that runs.
type Server struct {
	// Aspect and Check belong to the guard.
	Aspect *aspect.Aspect
	Check  func() error

	// Hold returns the lock under which the handler of ctx runs, through the function of the adapter.
	Hold func(ctx context.Context) *core.Hold

	// Call calls the endpoint. [ServeHTTP] sets it for adapters of HTTP.
	Call func(ctx context.Context, c Call) Answer

	post func(ctx context.Context, c Call, body io.Reader) Answer // for adapters of HTTP
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
	Text  string        // the string that the handler returned
	Cause string        // the type or reason by which a client distinguishes causes
	Retry time.Duration // the time after which to try again; 0 unless the answer has it in every form of the transport
	Lock  string        // "skipped", "null", "unlocked", or ""
	Token string        // the fencing token, "" if there is none
	All   string        // everything that a client can read, including headers
}

// check reports the required fields that are missing.
func (a *Adapter) check() error {
	return missing("Adapter",
		field{"Endpoint", !a.Endpoint.IsZero(), "the endpoint, as rules name it"},
		field{"ID", a.ID != "", "an expression for Call.ID, without #{}"},
		field{"Tenant", a.Tenant != "", "an expression for Call.Tenant, without #{}"},
		field{"Code", a.Code != nil, "a function that returns the half of a status that clients see"},
		field{"Start", a.Start != nil, "a function that serves a program until the test ends"},
	)
}

// check reports the required fields that are missing.
func (s *Server) check() error {
	return missing("Server",
		field{"Aspect", s.Aspect != nil, "the Aspect of the guard"},
		field{"Check", s.Check != nil, "the Check of the guard"},
		field{"Hold", s.Hold != nil, "a function that returns the lock of a handler"},
		field{"Call", s.Call != nil, "a function that calls the endpoint; ServeHTTP sets it"},
	)
}

// field is a required field of a type, and what to set it to.
type field struct {
	name  string
	isSet bool
	write string
}

func missing(typeName string, fields ...field) error {
	var errs []error
	for _, f := range fields {
		if !f.isSet {
			errs = append(errs, fmt.Errorf("adaptertest: %s.%s is missing: set it to %s", typeName, f.name, f.write))
		}
	}
	return errors.Join(errs...)
}
