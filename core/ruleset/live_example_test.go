package ruleset_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
)

// guard is what an adapter for a router does with its rules: it makes something of
// them for each route, and uses that until the next set is in force.
type guard struct {
	keys atomic.Pointer[map[ruleset.Endpoint]string]
}

func (g *guard) prepare(next *ruleset.Set) (commit func(), err error) {
	keys := map[ruleset.Endpoint]string{}
	for _, r := range next.Rules() {
		keys[r.Endpoint] = r.Key
	}
	return func() { g.keys.Store(&keys) }, nil
}

func (g *guard) key(method, path string) string { return (*g.keys.Load())[ruleset.Route(method, path)] }

func ExampleWatch() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "locks.yaml")
	save := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			fmt.Println(err)
		}
	}
	save(`rules: [{http: "POST /pay", key: "order:#{query.id}"}]`)

	seen := make(chan ruleset.Reload, 10) // instead of a log
	rules, err := ruleset.Watch(path, ruleset.WithReloadObserver(func(r ruleset.Reload) { seen <- r }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rules.Close()
	var g guard
	if _, err := rules.Subscribe(g.prepare); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("in force:", (<-seen).Hash, g.key(http.MethodPost, "/pay"))

	// Another key is refused, since programs with the old one may still run.
	save(`rules: [{http: "POST /pay", key: "pay:#{query.id}"}]`)
	fmt.Println("refused:", (<-seen).Err != nil, g.key(http.MethodPost, "/pay"))

	save(`{allow_rekey: true, rules: [{http: "POST /pay", key: "pay:#{query.id}"}]}`)
	fmt.Println("refused:", (<-seen).Err != nil, g.key(http.MethodPost, "/pay"))
	// Output:
	// in force: 3292e76d8518 order:#{query.id}
	// refused: true order:#{query.id}
	// refused: false pay:#{query.id}
}
