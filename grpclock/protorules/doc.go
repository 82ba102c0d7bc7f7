// Package protorules reads the locks that a .proto file declares around its methods,
// with the option of interlock/v1/lock.proto (import root grpclock/proto), as
// declarations of package ruleset. It is for adapters and tools: package grpclock
// uses it for the methods of a server, and a program that has a descriptor set can
// list the rules of all its methods with [All]. It needs no gRPC.
//
// The option is found whichever way the descriptors came into the program: generated
// code, a descriptor set that was read with or without knowing the option, or with a
// type for it made at run time. Every rule names its .proto file. Line and column are
// known where the descriptors have source information, as those of
// `buf build -o image.binpb` and `protoc --include_source_info` do; generated code
// has none.
//
// All functions are safe for concurrent use. They are for start-up: each call reads
// the options again.
package protorules
