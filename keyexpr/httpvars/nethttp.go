package httpvars

import (
	"net"
	"net/http"
	"net/netip"
)

// NetHTTP returns the [Host] of a request served by net/http's ServeMux: the
// client's address is that of the connection. It has no registered variables.
func NetHTTP(r *http.Request) Host { return netHTTP{r} }

type netHTTP struct{ request *http.Request }

// PathValue implements [Host].
func (n netHTTP) PathValue(name string) string { return n.request.PathValue(name) }

// Route implements [Host].
func (n netHTTP) Route() string { return n.request.Pattern }

// ClientIP implements [Host].
func (n netHTTP) ClientIP() string {
	if addr, err := netip.ParseAddrPort(n.request.RemoteAddr); err == nil {
		return addr.Addr().Unmap().String()
	}
	host, _, err := net.SplitHostPort(n.request.RemoteAddr)
	if err != nil {
		return n.request.RemoteAddr
	}
	return host
}

// Registered implements [Host].
func (n netHTTP) Registered(int) (any, error) {
	return nil, nil //nolint:nilnil // nil is unset
}
