package ginlock

import (
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

const addressVariable = "client_ip"

// addresses warns of rules over client_ip in an engine that lets every client choose
// it. That is gin's default, so it is no error.
func (k *check) addresses(engine *gin.Engine, chained []*chained) {
	if k.guard.cfg.clientIP != nil || !believesEverybody(engine) {
		return
	}
	for _, r := range routesOf(engine) {
		if slices.ContainsFunc(k.at(r.Endpoint), (*endpoint).usesAddress) {
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
	k.warnings = append(k.warnings, &ruleset.Problem{
		Endpoint: e,
		Message: where + "any client can choose its client_ip, and with it the lock: the engine believes what every address says in a header, " +
			"which is gin's default: call SetTrustedProxies with the proxies that there are, or with nil; or give WithClientIP",
	})
}

// at are the endpoints of Handle and Middleware for a route.
func (k *check) at(r ruleset.Endpoint) []*endpoint {
	list := slices.Clone(k.placed[r])
	for _, set := range k.sets {
		if e := set.table.at(r); e != nil {
			list = append(list, e)
		}
	}
	return list
}

func (e *endpoint) usesAddress() bool { return e.broken == nil && e.point.Uses(addressVariable) }

// usesAddress judges rules whose routes only requests tell.
func (h *chained) usesAddress() bool {
	none := ruleset.Route("*", "*")
	return h.guard.compileWith(none, httpvars.Config{AnyPathParam: true}, compiling(h.guard.trial, none, h.rules)).usesAddress()
}

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
