package wiring

import (
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

// GRPC returns a server in which the span of the call, which a stats handler starts, is the parent of the spans of
// locks.
func GRPC(locks *core.Client, traces trace.TracerProvider, rules ...ruleset.Rule) (*grpc.Server, *grpclock.Guard, error) {
	guard, err := grpclock.New(locks, grpclock.WithRules(rules...))
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(traces), otelgrpc.WithPropagators(propagation.TraceContext{}))),
		grpc.ChainUnaryInterceptor(guard.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(guard.StreamServerInterceptor()),
	)
	return server, guard, nil // register the services, then guard.Check(server)
}

// Traced makes a client send the trace of its context.
func Traced(traces trace.TracerProvider) grpc.DialOption {
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(traces), otelgrpc.WithPropagators(propagation.TraceContext{})))
}
