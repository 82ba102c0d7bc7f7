package ginlock_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

func TestKey_IsEvaluatedOnce(t *testing.T) {
	t.Parallel()
	evaluated := 0
	user := func(c *gin.Context) (string, error) { evaluated++; return c.GetHeader("X-User"), nil }
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "#{user}:#{path.id}:#{user}"}, func(c *gin.Context) {
			c.Request.Header.Set("X-User", "eve")
			c.Params[0].Value = "0"
			want(t, "held", s.held(t, prefix+"ann:42:ann"), true)
		})
		s.do(t, request{headers: map[string]string{"X-User": "ann"}})
		want(t, "evaluated", evaluated, 1)
		want(t, "held afterwards", s.held(t, prefix+"ann:42:ann"), false)
	}, ginlock.WithVariable("user", user))
}

func TestKey_PathValuesAreDecodedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ url, param, key string }{
		"plain":                 {"/items/abc", "abc", "item:abc"},
		"encoded spelling":      {"/items/%61bc", "abc", "item:abc"},
		"case is kept":          {"/items/ABC", "ABC", "item:ABC"},
		"encoded twice":         {"/items/a%2562", "a%62", "item:a%2562"},
		"the delimiter encoded": {"/items/a%3Ab", "a:b", "item:a%3Ab"},
		"space":                 {"/items/a%20b", "a b", "item:a b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "GET", "/items/:id", ruleset.Rule{Key: "item:#{path.id}"}, func(c *gin.Context) {
					want(t, "c.Param", c.Param("id"), tt.param)
					want(t, "key", ginlock.Hold(c).Key(), prefix+tt.key)
				})
				want(t, "status", s.do(t, request{method: "GET", url: tt.url}).Code, http.StatusOK)
			})
		})
	}
}

func TestVariable_ClientIP(t *testing.T) {
	t.Parallel()
	rule := ruleset.Rule{Key: "ip:#{client_ip}"}
	bubble(t, func(t *testing.T, s *shop) {
		if err := s.engine.SetTrustedProxies([]string{"192.0.2.1"}); err != nil {
			t.Fatal(err)
		}
		s.handle(t, "POST", payPath, rule, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"ip:"+c.GetHeader("Want"))
		})
		s.do(t, request{headers: map[string]string{"Want": "192.0.2.1"}})
		s.do(t, request{headers: map[string]string{"Want": "203.0.113.9", "X-Forwarded-For": "203.0.113.9"}})
	})
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, rule, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"ip:10.0.0.1")
		})
		s.do(t, request{})
	}, ginlock.WithClientIP(func(*gin.Context) string { return "10.0.0.1" }))
}

func TestVariable_Unset(t *testing.T) {
	t.Parallel()
	who := func(c *gin.Context) (*principal, error) {
		p, _ := c.Value("principal").(*principal)
		return p, nil
	}
	authenticate := func(c *gin.Context) { c.Set("principal", &principal{"acme"}) }
	rule := ruleset.Rule{Key: "#{who.Tenant}:order:#{path.id}", OnKey: failpolicy.Proceed}
	bubble(t, func(t *testing.T, s *shop) {
		var logged error
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			if e := c.Errors.Last(); e != nil {
				logged = e.Err
			}
		})
		s.engine.POST("/wrong/:id", s.guard.Handler(rule), authenticate, func(*gin.Context) { t.Error("the handler ran") })
		s.engine.POST("/right/:id", authenticate, s.guard.Handler(rule), func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"acme:order:1")
		})
		w := s.do(t, request{url: "/wrong/1"})
		want(t, "status", w.Code, http.StatusInternalServerError)
		want(t, "type", problemOf(t, w).Type, "about:blank")
		wantText(t, logged, "is the lock installed before the code that sets it, such as authentication?", "who", "POST /wrong/:id")
		want(t, "in the right order", s.do(t, request{url: "/right/1"}).Code, http.StatusOK)
	}, ginlock.WithVariable("who", who))
}

func TestVariable_Nil(t *testing.T) {
	t.Parallel()
	for template, variable := range map[string]ginlock.Option{
		"user:#{roles}":         ginlock.WithVariable("roles", func(*gin.Context) ([]string, error) { return nil, nil }),
		`user:#{claims["sub"]}`: ginlock.WithVariable("claims", func(*gin.Context) (map[string]string, error) { return nil, nil }),
		"user:#{anything}":      ginlock.WithVariable("anything", func(*gin.Context) (any, error) { return []string(nil), nil }),
		"user:#{who.Tenant}":    ginlock.WithVariable("who", func(*gin.Context) (*principal, error) { return nil, nil }),
	} {
		bubble(t, func(t *testing.T, s *shop) {
			s.handle(t, "POST", payPath, ruleset.Rule{Key: template}, func(*gin.Context) { t.Error("the handler ran") })
			want(t, "status of "+template, s.do(t, request{}).Code, http.StatusInternalServerError)
		}, variable)
	}
}

func TestVariable_Error(t *testing.T) {
	t.Parallel()
	broken := func(*gin.Context) (string, error) { return "", errors.New("no such session in redis") }
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "#{user}"}, func(*gin.Context) { t.Error("the handler ran") })
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusInternalServerError)
	}, ginlock.WithVariable("user", broken))
}

func TestKey_PathValuesUnderUseRawPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.UseRawPath = true
		s.handle(t, "GET", "/items/:id", ruleset.Rule{Key: "item:#{path.id}"}, func(c *gin.Context) {
			want(t, "key", ginlock.Hold(c).Key(), prefix+"item:"+c.GetHeader("Want"))
		})
		want(t, "Check", s.guard.Check(s.engine), nil)
		for url, key := range map[string]string{"/items/a%2Fb": "a/b", "/items/a%252Fb": "a%252Fb", "/items/%61": "a"} {
			want(t, url, s.do(t, request{method: "GET", url: url, headers: map[string]string{"Want": key}}).Code, http.StatusOK)
		}
	})
}

// However a client spells a cookie, the key has the value that the handler sees.
func TestVariable_Cookie(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, http.MethodPost, "/cart", ruleset.Rule{Key: "cart:#{cookie.cart}"}, func(c *gin.Context) {
			value, err := c.Cookie("cart")
			want(t, "error", err, nil)
			want(t, "held", s.held(t, prefix+"cart:"+value), true)
		})
		for _, spelling := range []string{"12", "%31%32", "%312", `"12"`} {
			w := s.do(t, request{url: "/cart", headers: map[string]string{"Cookie": "cart=" + spelling}})
			want(t, spelling, w.Code, http.StatusOK)
		}
		w := s.do(t, request{url: "/cart", headers: map[string]string{"Cookie": "cart=%zz"}})
		want(t, "undecodable", w.Code, http.StatusBadRequest)
	})
}
