package wiring

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// OTLP returns the provider for telemetry.WithTracerProvider, otelgin and otelgrpc. Shut it down before the
// program exits.
func OTLP(ctx context.Context, service string) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracegrpc.New(ctx) // to OTEL_EXPORTER_OTLP_ENDPOINT, such as http://localhost:4317
	if err != nil {
		return nil, err
	}
	name := resource.NewSchemaless(attribute.String("service.name", service))
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(name)), nil
}
