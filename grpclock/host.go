package grpclock

import (
	"context"
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// host answers what keys ask about a call besides its message.
type host struct {
	guard      *Guard
	ctx        context.Context //nolint:containedctx // lives as long as the call
	fullMethod string

	asked    bool        // for metadata
	metadata metadata.MD // all of it, from the second question on
}

// Metadata is the values of a key. One is looked for where it is; whoever asks for
// more does not search all of them each time.
func (h *host) Metadata(key string) []string {
	if !h.asked {
		h.asked = true
		return metadata.ValueFromIncomingContext(h.ctx, key)
	}
	if h.metadata == nil {
		h.metadata = metadata.MD{}
		if md, ok := metadata.FromIncomingContext(h.ctx); ok {
			h.metadata = md
		}
	}
	return h.metadata[key]
}

// Method is the full method.
func (h *host) Method() string { return h.fullMethod }

// Peer is the caller's address without a port.
func (h *host) Peer() string {
	p, ok := peer.FromContext(h.ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	address := p.Addr.String()
	if bare, _, err := net.SplitHostPort(address); err == nil {
		return bare
	}
	return address
}

// Registered computes a registered variable.
func (h *host) Registered(i int) (any, error) { return h.guard.config.variables[i].value(h.ctx) }
