package httpvars_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

func Example() {
	vars, err := httpvars.New(httpvars.Config{PathParams: []string{"shop"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := keyexpr.Compile("stock:#{path.shop}:#{map(body.items, .sku)}", vars.Schema())
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /shops/{shop}/orders", func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(key.Keys(vars.Request(r, httpvars.NetHTTP(r))))
	})
	r := httptest.NewRequest(http.MethodPost, "/shops/berlin/orders", strings.NewReader(`{"items": [{"sku": "b"}, {"sku": "a"}]}`))
	r.Header.Set("Content-Type", "application/json")
	mux.ServeHTTP(httptest.NewRecorder(), r)
	// Output: [stock:berlin:a stock:berlin:b] <nil>
}
