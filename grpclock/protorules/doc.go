// Package protorules reads the locks that a .proto file declares for its methods with the option of
// interlock/v1/lock.proto (import root grpclock/proto). It returns them as declarations of package
// ruleset, and needs no gRPC.
//
// Adapters and tools call it: package grpclock reads the rules of the methods of a server, and a
// program that has a descriptor set can list the rules of all its methods with [All].
//
// The package finds the option however the descriptors store it: as generated code does, as a descriptor
// set does, whether or not the option was registered when the program read it, or with a type for the
// option that was created at run time.
// Every rule names its .proto file. It also has a line and a column if the descriptors contain source
// information, as the output of `buf build -o image.binpb` and `protoc --include_source_info` does;
// generated code contains none.
//
// All functions are safe for concurrent use. Call them at start-up: each call reads the options again.
package protorules
