package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Whichever way a client spells a cookie, the lock is that of the value the handler
// sees.
func TestGuard_CookieIsDecodedAsForTheHandler(t *testing.T) {
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
