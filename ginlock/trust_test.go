package ginlock_test

import (
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// Whoever may choose the address may choose the lock. Gin's default lets everybody.
func TestCheck_WarnsOfAClientIPThatAnyClientChooses(t *testing.T) {
	t.Parallel()
	byAddress := ruleset.Rule{Key: "ip:#{client_ip}"}
	inCondition := ruleset.Rule{Key: "order:#{path.id}", When: `client_ip != "192.0.2.1"`}
	guards := map[string]func(t *testing.T, g *ginlock.Guard, r *gin.Engine){
		"Handle": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			want(t, "Handle", g.Handle(r, "POST", payPath, byAddress, ok), nil)
		},
		"Handler": func(_ *testing.T, g *ginlock.Guard, r *gin.Engine) { r.POST(payPath, g.Handler(byAddress), ok) },
		"Middleware": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			rule := inCondition
			rule.Endpoint = ruleset.Route("POST", payPath)
			set, err := ruleset.NewSet([]ruleset.Rule{rule})
			want(t, "NewSet", err, nil)
			r.Use(g.Middleware(set))
			r.POST(payPath, ok)
		},
		"none that uses it": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			want(t, "Handle", g.Handle(r, "POST", payPath, pay, ok), nil)
		},
	}
	proxies := func(list ...string) func(t *testing.T, r *gin.Engine) {
		return func(t *testing.T, r *gin.Engine) { want(t, "SetTrustedProxies", r.SetTrustedProxies(list), nil) }
	}
	engines := map[string]struct {
		set   func(t *testing.T, r *gin.Engine)
		warns bool
	}{
		"gin's default":            {func(*testing.T, *gin.Engine) {}, true},
		"every proxy of IPv4":      {proxies("0.0.0.0/0"), true},
		"every proxy of IPv6":      {proxies("::/0"), true},
		"no proxy":                 {proxies(), false},
		"some proxies":             {proxies("10.0.0.0/8", "192.0.2.1", "2001:db8::1"), false},
		"no header":                {func(_ *testing.T, r *gin.Engine) { r.RemoteIPHeaders = nil }, false},
		"headers are not believed": {func(_ *testing.T, r *gin.Engine) { r.ForwardedByClientIP = false }, false},
		"a platform":               {func(_ *testing.T, r *gin.Engine) { r.TrustedPlatform = gin.PlatformCloudflare }, false},
	}
	for how, guarded := range guards {
		for name, engine := range engines {
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Parallel()
				rec := &record{}
				g, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
				engine.set(t, r)
				guarded(t, g, r)
				want(t, "Check", g.Check(r), nil)
				if !engine.warns || how == "none that uses it" {
					want(t, "warnings", len(rec.warnings), 0)
					return
				}
				want(t, "warnings", len(rec.warnings), 1)
				for _, part := range []string{"client_ip", "SetTrustedProxies", "WithClientIP"} {
					want(t, "it says "+part, strings.Contains(rec.warnings[0].Error(), part), true)
				}
				place := map[string]string{"Handle": payPath, "Handler": "trust_test.go:", "Middleware": payPath}[how]
				want(t, "it says where", strings.Contains(rec.warnings[0].Error(), place), true)
			})
		}
	}
}

func TestCheck_DoesNotWarnOfAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	rec := &record{}
	g, r := newGuard(t, core.WithObserver(rec.observer()), ginlock.WithClientIP(func(*gin.Context) string { return "10.0.0.1" })), gin.New()
	want(t, "Handle", g.Handle(r, "POST", payPath, ruleset.Rule{Key: "ip:#{client_ip}"}, ok), nil)
	want(t, "Check", g.Check(r), nil)
	want(t, "warnings", len(rec.warnings), 0)
}

// Start-up says what interlock check says.
func TestCheck_WarnsOfConstantKeys(t *testing.T) {
	t.Parallel()
	rec := &record{}
	g, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
	set, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("* /reports/*"), Key: "report"},
		{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"},
	})
	want(t, "NewSet", err, nil)
	r.Use(g.Middleware(set))
	want(t, "Handle", g.Handle(r, "POST", "/import/:file", ruleset.Rule{Key: "import"}, ok), nil)
	want(t, "warnings before Check, which not every program calls", len(rec.warnings), 1)
	for _, path := range []string{"/reports/daily", "/reports/weekly", "/orders/:id/pay"} {
		r.POST(path, ok)
	}
	want(t, "Check", g.Check(r), nil)
	want(t, "warnings", len(rec.warnings), 2)
	for i, parts := range [][]string{{`"import" is one lock for all requests`, "#{path.file}"}, {`"report" is one lock for all requests`, "* /reports/*"}} {
		for _, part := range parts {
			want(t, "it says "+part, strings.Contains(rec.warnings[i].Error(), part), true)
		}
	}
}
