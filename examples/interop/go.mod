// The module is called as if it were below core, so that it may use the test kits in
// core/internal: servers, clusters, a proxy that loses replies. No other module imports it.
module github.com/interlock-go/interlock/core/interop

go 1.26.0

replace github.com/interlock-go/interlock => ../..

require (
	github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
