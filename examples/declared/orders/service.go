// Package orders is a service over HTTP, over gRPC, and with a nightly job. Its Go
// code says nowhere what is locked: that stands in a rule file (locks.yaml) and in
// orders.proto. http.go, grpc.go and nightly.go each connect the rules to one of the
// three, with one line.
package orders

import (
	"context"
	"errors"
	"io"

	"github.com/gin-gonic/gin"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// Config is what a service needs. All of it is required.
type Config struct {
	Locks    *core.Client // stays the caller's; its observers are notified of rules, too
	RuleFile string       // is watched

	// Work is what there is to do for an order, or for a shop at night.
	Work func(ctx context.Context, subject string) error
}

// Service is the service. CloseDay runs at night.
type Service struct {
	CloseDay func(context.Context, Day) (Report, error)

	rules  *ruleset.Live
	work   func(ctx context.Context, subject string) error
	engine *gin.Engine
	guard  *ginlock.Guard
	server *grpc.Server

	serving serving
}

// Open loads the rules, and compares them with the routes, methods and functions of
// the service. The error has every problem: with a mistake in its rules the service
// does not start.
func Open(cfg Config) (*Service, error) {
	rules, err := ruleset.Watch(cfg.RuleFile)
	if err != nil {
		return nil, err
	}
	s := &Service{rules: rules, work: cfg.Work}
	if err := errors.Join(s.openHTTP(cfg), s.openGRPC(cfg), s.openNightly(cfg)); err != nil {
		_ = rules.Close()
		return nil, err
	}
	return s, nil
}

// Rules are the rules in force.
func (s *Service) Rules() *ruleset.Set { return s.rules.Current() }

// WriteRoutes writes what "interlock check --routes" wants to know.
func (s *Service) WriteRoutes(w io.Writer) error { return s.guard.WriteRoutes(w, s.engine) }

// Close ends what Start has begun, and the watching of the rule file. Close the lock
// client after it.
func (s *Service) Close() {
	s.stop()
	_ = s.rules.Close()
}
