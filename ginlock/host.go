package ginlock

import "github.com/gin-gonic/gin"

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
func (h host) ClientIP() string { return h.cfg.clientIP(h.c) }

// Registered is part of [httpvars.Host].
func (h host) Registered(i int) (any, error) { return h.cfg.variables[i].value(h.c) }
