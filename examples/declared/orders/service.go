// Package orders implements a service with HTTP, gRPC and a nightly job. Its Go code declares no
// locks: a rule file (locks.yaml) and orders.proto do. http.go, grpc.go and nightly.go each
// connect the rules with one line.
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

// Config configures a service. All fields are required.
type Config struct {
	Locks    *core.Client // the caller closes it; its observers also get notifications about rules
	RuleFile string       // the watched rule file

	// Work does the work for an order, or for a shop at night.
	Work func(ctx context.Context, subject string) error
}

// Service is a running service. CloseDay runs at night.
type Service struct {
	CloseDay func(context.Context, Day) (Report, error)

	rules  *ruleset.Live
	work   func(ctx context.Context, subject string) error
	engine *gin.Engine
	guard  *ginlock.Guard
	server *grpc.Server

	serving serving
}

// Open loads the rules and checks them against the routes, methods and functions of the service.
// If the rules have a mistake, the service does not start: the error lists every problem.
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

// Rules returns the rules in force.
func (s *Service) Rules() *ruleset.Set { return s.rules.Current() }

// WriteRoutes writes the file for "interlock check --routes".
func (s *Service) WriteRoutes(w io.Writer) error { return s.guard.WriteRoutes(w, s.engine) }

// Close stops the servers of Start and the watch of the rule file. Close the lock
// client after it.
func (s *Service) Close() {
	s.stop()
	_ = s.rules.Close()
}
