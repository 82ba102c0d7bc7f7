// Package proto has the .proto file of the lock options, for tools that hand it on.
package proto

import "embed"

// Root is this folder as an import root: it has interlock/v1/lock.proto.
//
//go:embed interlock/v1/lock.proto
var Root embed.FS
