// Package shoppb is the gRPC service of the shop. It is generated from shop.proto.
package shoppb

//go:generate go run ./gen shop.proto
