package wiring

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Prometheus returns the provider for telemetry.WithMeterProvider and the handler for GET /metrics, with exemplars.
func Prometheus(service string) (metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	scrape := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	name := resource.NewSchemaless(attribute.String("service.name", service)) // for target_info
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(name)), scrape, nil
}
