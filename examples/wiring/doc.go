// Package wiring connects package telemetry with Prometheus, OTLP, otelgin and otelgrpc. README.md shows
// the same functions; a test compares them.
package wiring
