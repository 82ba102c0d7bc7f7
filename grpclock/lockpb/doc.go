// Package lockpb is the Go code of interlock/v1/lock.proto, whose import root is
// grpclock/proto: the option with which a .proto file declares a lock around a method.
// The code generated from such a file imports it. Programs have no other use for it:
// package grpclock reads the options by itself, and package grpclock/protorules gives
// them to tools.
package lockpb

//go:generate go run ../internal/gen -roots ../proto interlock/v1/lock.proto
