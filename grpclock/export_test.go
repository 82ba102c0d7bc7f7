package grpclock

import (
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// StatusOf returns the status for a refused caller.
func StatusOf(refused *aspect.RefusedError) *status.Status {
	return statusOf(methodcall.Refusal(refused))
}

// Known returns the number of methods in the guard's table.
func (g *Guard) Known() int { return g.methods.Len() }
