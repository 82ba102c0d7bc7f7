package main

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// traces holds a tracer provider for each service. Without an endpoint, it keeps their spans.
type traces struct {
	endpoint  string
	kept      keeper
	providers []*sdktrace.TracerProvider
}

// provider creates the provider of a service.
func (t *traces) provider(ctx context.Context, service string) (*sdktrace.TracerProvider, error) {
	export, err := t.exporter(ctx)
	if err != nil {
		return nil, err
	}
	name := resource.NewSchemaless(attribute.String("service.name", service))
	provider := sdktrace.NewTracerProvider(export, sdktrace.WithResource(name))
	t.providers = append(t.providers, provider)
	return provider, nil
}

func (t *traces) exporter(ctx context.Context) (sdktrace.TracerProviderOption, error) {
	if t.endpoint == "" {
		return sdktrace.WithSyncer(&t.kept), nil
	}
	url := t.endpoint
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(url))
	if err != nil {
		return nil, err
	}
	return sdktrace.WithBatcher(exporter), nil
}

// close sends the remaining spans.
func (t *traces) close(ctx context.Context) error {
	var errs []error
	for _, p := range t.providers {
		errs = append(errs, p.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
