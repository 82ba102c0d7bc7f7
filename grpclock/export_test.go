package grpclock

import (
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// StatusOf is the answer to a refused caller.
func StatusOf(refused *aspect.RefusedError) *status.Status {
	return statusOf(methodcall.Refusal(refused))
}

// Known is how many methods the guard remembers.
func (g *Guard) Known() int { return g.methods.Len() }
