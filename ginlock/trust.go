package ginlock

import (
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

const addressVariable = "client_ip"

// addresses warns of rules over client_ip in an engine that lets every client choose
// it. That is gin's default, so it is no error.
func (k *check) addresses(engine *gin.Engine, chained []*chained) {
	if k.guard.cfg.clientIP != nil || !believesEverybody(engine) {
		return
	}
	for _, r := range routesOf(engine) {
		if slices.ContainsFunc(k.guard.routes.At(r.Endpoint), usesAddress) {
			k.warnOfAddress(r.Endpoint, "")
		}
	}
	for _, h := range chained {
		if h.usesAddress() {
			k.warnOfAddress(ruleset.Endpoint{}, fmt.Sprintf("Handler at %s: ", h.where))
		}
	}
}

func (k *check) warnOfAddress(e ruleset.Endpoint, where string) {
	k.report.Warn(e, &ruleset.Problem{
		Endpoint: e,
		Message: where + "any client can choose its client_ip, and with it the lock: the engine believes what every address says in a header, " +
			"which is gin's default: call SetTrustedProxies with the proxies that there are, or with nil; or give WithClientIP",
	})
}

func usesAddress(e *httpcall.Entry) bool { return e.Err == nil && e.Point.Uses(addressVariable) }

// usesAddress judges rules whose routes only requests tell.
func (h *chained) usesAddress() bool { return usesAddress(h.guard.put(noRoute.Endpoint, h.rules)) }

// believesEverybody asks the engine for the client of requests from addresses that have
// nothing in common, in a header of which another one is named. With a platform, who
// sets the header is the platform's business.
func believesEverybody(engine *gin.Engine) bool {
	if engine.TrustedPlatform != "" || engine.AppEngine {
		return false
	}
	for _, family := range [][]string{{"192.0.2.1", "203.0.113.254"}, {"2001:db8::1", "3fff::1"}} {
		if !slices.ContainsFunc(family, func(address string) bool { return clientOf(engine, address) == address }) {
			return true
		}
	}
	return false
}

// clientOf is the client of a request from an address that names another.
func clientOf(engine *gin.Engine, address string) string {
	c := gin.CreateTestContextOnly(nil, engine)
	c.Request = &http.Request{RemoteAddr: net.JoinHostPort(address, "1"), Header: make(http.Header)}
	for _, name := range engine.RemoteIPHeaders {
		c.Request.Header.Set(name, "198.51.100.1")
	}
	return c.ClientIP()
}
