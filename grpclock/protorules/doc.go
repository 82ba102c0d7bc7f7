// Package protorules reads the locks that a .proto file declares for its methods with the option of
// interlock/v1/lock.proto (import root grpclock/proto). It returns them as declarations of package
// ruleset, and needs no gRPC.
//
// Adapters and tools call it: package grpclock reads the rules of the methods of a server, and a
// program that has a descriptor set can list the rules of all its methods with [All].
//
// The package finds the option however the descriptors came into the program: in generated code, in a
// descriptor set that was read with or without knowing the option, or with a type made at run time.
// Every rule names its .proto file. Line and column are known if the descriptors have source
// information, as the output of `buf build -o image.binpb` and `protoc --include_source_info` has;
// generated code has none.
//
// All functions are safe for concurrent use. Call them at start-up: each call reads the options again.
package protorules
