// Package shoppb contains a service with a method of each shape, for tests and examples.
// Its messages have the opaque API.
package shoppb

//go:generate go run ../gen -roots .. -services ../../../examples shoppb/shop.proto
