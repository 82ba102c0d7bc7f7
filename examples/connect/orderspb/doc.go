// Package orderspb is the Connect service of the example. It is generated from orders.proto,
// which declares the locks of its methods.
package orderspb

//go:generate go run ../../declared/orderspb/gen orders.proto protoc-gen-go protoc-gen-connect-go:package_suffix,simple
