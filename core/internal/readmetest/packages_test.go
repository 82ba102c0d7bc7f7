package readmetest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
)

// known maps the names of packages in the texts to their paths.
var known = map[string]string{
	"adaptertest": module + "/core/aspect/adaptertest",
	"aspect":      module + "/core/aspect",
	"connectlock": module + "/grpclock/connectlock",
	"core":        module + "/core",
	"failpolicy":  module + "/failpolicy",
	"fence":       module + "/core/fence",
	"ginlock":     module + "/ginlock",
	"grpclock":    module + "/grpclock",
	"httplock":    module + "/core/aspect/httplock",
	"keyexpr":     module + "/keyexpr",
	"redistest":   module + "/core/redistest",
	"ruleset":     module + "/core/ruleset",
	"telemetry":   module + "/telemetry",
	"lockz":       module + "/telemetry/lockz",

	"connect": "connectrpc.com/connect",
	"gin":     "github.com/gin-gonic/gin",
	"grpc":    "google.golang.org/grpc",
	"redis":   "github.com/redis/go-redis/v9",

	"context":  "context",
	"errors":   "errors",
	"fmt":      "fmt",
	"http":     "net/http",
	"os":       "os",
	"tls":      "crypto/tls",
	"x509":     "crypto/x509",
	"log":      "log",
	"slog":     "log/slog",
	"sql":      "database/sql",
	"synctest": "testing/synctest",
	"testing":  "testing",
	"time":     "time",
}

// packages type-checks code with the packages from the build of this repository.
type packages struct {
	mu       sync.Mutex // an importer must not be used concurrently
	importer types.Importer
	fset     *token.FileSet
}

func (p *packages) Import(path string) (*types.Package, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.importer.Import(path)
}

// load compiles the known packages, most of which are in the build cache.
func load(t *testing.T) *packages {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Dir"}
	for _, importPath := range known {
		args = append(args, importPath)
	}
	exports := map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(goTool(t, "", args...)))
	for {
		var p struct{ ImportPath, Export, Dir string }
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		exports[p.ImportPath] = p.Export
		notice(t, p.ImportPath, p.Dir)
	}
	fset := token.NewFileSet()
	lookup := func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("package %q is unknown: add it to known in this file", path)
		}
		return os.Open(file)
	}
	return &packages{importer: importer.ForCompiler(fset, "gc", lookup), fset: fset}
}

// notice reads the folders of this module's packages, so that go test does not use a cached result after a
// change in one of them.
func notice(t *testing.T, importPath, dir string) {
	t.Helper()
	if !strings.HasPrefix(importPath, module) {
		return
	}
	if _, err := os.ReadDir(dir); err != nil {
		t.Fatal(err)
	}
}

// lookup returns a known package by its name in the texts.
func (p *packages) lookup(t *testing.T, name string) *types.Package {
	t.Helper()
	pkg, err := p.Import(known[name])
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Name() != name {
		t.Fatalf("package %s is called %s, not %s", path.Base(known[name]), pkg.Name(), name)
	}
	return pkg
}
