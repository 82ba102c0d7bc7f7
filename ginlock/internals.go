package ginlock

import (
	"reflect"
	"unsafe"

	"github.com/gin-gonic/gin"
)

// This file reads state that gin does not export. The other files of the package use only the exported API of gin.

// functionID is the identity of a handler function.
type functionID unsafe.Pointer

// identify returns the same value only for the same function value. It reads the pointer to the closure, because
// package reflect returns the pointer to the code, which all closures of one function literal share.
func identify(h gin.HandlerFunc) functionID {
	return *(*functionID)(unsafe.Pointer(&h)) //nolint:gosec // a func value is a pointer to its closure
}

// engineOf returns the engine that serves a request. gin.Context does not export it, and a guard may serve engines that
// were not given to Check. engineOf returns nil if this version of gin has no such field.
func engineOf(c *gin.Context) *gin.Engine {
	field := reflect.ValueOf(c).Elem().FieldByName("engine")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*gin.Engine]() {
		return nil
	}
	return (*gin.Engine)(field.UnsafePointer())
}

// chainsIn returns the chains of the routes of an engine, in the order of Routes, because Routes exports only the
// last handler of each chain. It returns nil if this version of gin has other fields.
func chainsIn(engine *gin.Engine) (chains []gin.HandlersChain) {
	trees := reflect.ValueOf(engine).Elem().FieldByName("trees")
	if trees.Kind() != reflect.Slice {
		return nil
	}
	for i := range trees.Len() {
		chains = appendChains(chains, fieldOf(trees.Index(i), "root"))
	}
	return chains
}

// appendChains appends the chains of a node and of the nodes below it.
func appendChains(to []gin.HandlersChain, node reflect.Value) []gin.HandlersChain {
	node = reflect.Indirect(node)
	if chain := chainField(node, "handlers"); len(chain) > 0 {
		to = append(to, chain)
	}
	if children := fieldOf(node, "children"); children.Kind() == reflect.Slice {
		for i := range children.Len() {
			to = appendChains(to, children.Index(i))
		}
	}
	return to
}

// unroutedChainsIn returns the chains of requests that match no route (404, 405), because gin exports no accessor
// for them.
func unroutedChainsIn(engine *gin.Engine) []gin.HandlersChain {
	v := reflect.ValueOf(engine).Elem()
	return []gin.HandlersChain{chainField(v, "noRoute"), chainField(v, "noMethod")}
}

// chainField returns the chain in a field of a struct, nil if the struct has no such field.
func chainField(v reflect.Value, name string) gin.HandlersChain {
	field := fieldOf(v, name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[gin.HandlersChain]() {
		return nil
	}
	return *(*gin.HandlersChain)(field.Addr().UnsafePointer())
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}
