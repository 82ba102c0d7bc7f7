// Package proto embeds the .proto file of the lock options, for tools that copy it to users.
package proto

import "embed"

// Root is this folder as an import root. It contains interlock/v1/lock.proto.
//
//go:embed interlock/v1/lock.proto
var Root embed.FS
