// Package methodcall runs calls of protobuf methods under their rules, for the servers
// of any library: a library brings each call as a [UnaryCall] or a [StreamCall].
package methodcall
