// Package shoppb is the gRPC service of the shop, generated from shop.proto.
package shoppb

//go:generate go run ./gen shop.proto
