package wiring

import (
	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/ginlock"
)

// Gin returns an engine in which the span of the request is the parent of the spans of locks.
func Gin(locks *core.Client, traces trace.TracerProvider) (*gin.Engine, *ginlock.Guard, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, nil, err
	}
	engine := gin.New()
	engine.Use(gin.Recovery(), otelgin.Middleware("shop",
		otelgin.WithTracerProvider(traces), otelgin.WithPropagators(propagation.TraceContext{})))
	return engine, guard, nil // register routes with guard.Handle, then guard.Check(engine)
}
