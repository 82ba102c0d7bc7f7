// Package protorules reads the lock options of methods. A .proto file declares them with interlock/v1/lock.proto (import
// root grpclock/proto). The package returns each option as a [ruleset.Declared]. It does not import gRPC.
//
// Adapters and tools call it. Package grpclock reads the rules of the methods of a server. A program with a descriptor set
// can list the rules of all its methods with [All].
//
// The package finds the option in generated code and in descriptor sets. It also finds an option that was not registered
// when the program read the descriptors, and an option with a type that was created at run time.
//
// The source of every rule names its .proto file. It has a line and a column if the descriptors contain source
// information. The output of `buf build -o image.binpb` and of `protoc --include_source_info` contains it, generated code
// does not.
//
// All functions are safe for concurrent use. Call them at start-up, because each call reads the options
// again.
package protorules
