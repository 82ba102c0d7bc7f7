package ginlock

import (
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

type config struct {
	httpcall.Config

	aspect     []aspect.Option
	fallbacks  map[string]gin.HandlerFunc
	variables  []func(*gin.Context) (any, error)
	clientIP   func(*gin.Context) string                // nil: gin's
	writeError func(*gin.Context, *aspect.RefusedError) // nil while no option gives it
}

func newConfig(opts []Option) (cfg config, problems []error) {
	cfg = config{Config: httpcall.NewConfig(), fallbacks: make(map[string]gin.HandlerFunc)}
	cfg.CookieValue, cfg.Canonical = cookieValue, canonical
	problems = aspect.Apply("", &cfg, opts)
	if cfg.writeError == nil {
		cfg.writeError = WriteProblem
	}
	return cfg, append(problems, cfg.Check())
}

// cookieValue is a cookie's value as [gin.Context.Cookie] gives it: decoded, and empty where it
// cannot be.
func cookieValue(raw string) string {
	value, err := url.QueryUnescape(raw)
	if err != nil {
		return ""
	}
	return value
}
