// Package wiring connects package telemetry with what shows metrics and traces: Prometheus,
// OTLP, otelgin and otelgrpc. README.md has the same functions, which a test compares.
package wiring
