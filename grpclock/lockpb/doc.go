// Package lockpb is the Go code of interlock/v1/lock.proto (import root grpclock/proto): the option with
// which a .proto file declares a lock for a method. The code generated from such a file imports it. Programs
// have no other use for it, because package grpclock reads the options itself, and package
// grpclock/protorules returns them to tools.
package lockpb

//go:generate go run ../internal/gen -roots ../proto interlock/v1/lock.proto
