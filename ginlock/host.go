package ginlock

import (
	"net/url"

	"github.com/gin-gonic/gin"
)

// host answers what only Gin knows of a request: the [httpvars.Host].
type host struct {
	c   *gin.Context
	cfg *config
}

// PathValue is part of [httpvars.Host].
func (h host) PathValue(name string) string { return h.c.Param(name) }

// Route is part of [httpvars.Host].
func (h host) Route() string { return h.c.FullPath() }

// ClientIP is part of [httpvars.Host].
func (h host) ClientIP() string {
	if address := h.cfg.clientIP; address != nil {
		return address(h.c)
	}
	return h.c.ClientIP()
}

// Registered is part of [httpvars.Host].
func (h host) Registered(i int) (any, error) { return h.cfg.variables[i].value(h.c) }

// cookieValue is a cookie's value as [gin.Context.Cookie] gives it: decoded, and
// empty where it cannot be.
func cookieValue(raw string) string {
	value, err := url.QueryUnescape(raw)
	if err != nil {
		return ""
	}
	return value
}
