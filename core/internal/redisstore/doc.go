// Package redisstore is the only code that knows how a lock looks in Redis: the scripts of each kind, one embedded Lua
// file per operation, and typed calls of them. Package wire carries them.
//
// Every script is harmless when it is executed twice, because a command without an answer is sent again by the callers
// of this package. Layouts, channels and messages are Redisson's.
package redisstore
