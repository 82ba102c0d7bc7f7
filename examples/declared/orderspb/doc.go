// Package orderspb is the gRPC service of the example. It is generated from orders.proto,
// which declares the locks of its methods.
package orderspb

//go:generate go run ./gen orders.proto protoc-gen-go protoc-gen-go-grpc
