package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock/"

// layers maps each part of the module to the other parts that it may import. A package belongs to the part
// with the longest matching path prefix. No other part may import telemetry.
var layers = map[string][]string{
	"core":                    {"core/internal", "core/internal/missingunit", "core/internal/notify"},
	"core/fence":              {},
	"core/internal":           {"core/redistest", "core/internal/topology"}, // redistest is test support; TestDependencies_LockAlone checks what core links
	"core/redistest":          {"core", "core/internal"},
	"core/ruleset":            {"core/internal/missingunit", "core/internal/notify", "failpolicy"},
	"core/aspect":             {"core", "core/internal/httpvars", "core/internal/notify", "core/internal/preview", "core/ruleset", "keyexpr", "failpolicy"},
	"core/aspect/adaptertest": {"core", "core/aspect", "core/redistest", "core/ruleset", "failpolicy"}, // tests for adapters
	"core/cmd":                {"core", "core/internal/httpvars", "core/internal/topology", "core/internal/preview", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "ginlock", "grpclock", "grpclock/lockpb", "grpclock/proto", "grpclock/protorules"},
	"keyexpr":                 {"failpolicy"}, // it suggests the nearest name
	"failpolicy":              {},
	"telemetry":               {"core", "core/aspect", "core/ruleset", "failpolicy"}, // aspect's observations use the last two
	"ginlock":                 {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy"},
	"grpclock":                {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/lockpb", "grpclock/protorules", "grpclock/internal/protovars", "grpclock/internal/methodrules", "grpclock/internal/methodcall"},

	// Helpers of every layer, which use only the standard library.
	"core/internal/missingunit": {},
	"core/internal/notify":      {},

	// The contract between the command and the adapters.
	"core/internal/preview": {},

	// The variables of HTTP requests and of RPCs.
	"core/internal/httpvars":      {"keyexpr"},
	"grpclock/internal/protovars": {"keyexpr"},

	// The tests of package core. No product code imports them.
	"core/internal/locktest": {"core", "core/internal", "core/redistest"},

	// The facts that a Redis server reports about itself.
	"core/internal/topology": {},

	// A tool that reads .proto files links these packages. They need neither gRPC nor a lock client.
	"grpclock/lockpb":     {},
	"grpclock/proto":      {},
	"grpclock/protorules": {"core/ruleset", "failpolicy", "grpclock/lockpb"},

	// The common code of the guards for gRPC servers and for Connect servers.
	"grpclock/internal/methodrules": {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/protorules", "grpclock/internal/protovars"},
	"grpclock/internal/methodcall":  {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/internal/methodrules"},
	"grpclock/connectlock":          {"core", "core/aspect", "core/ruleset", "grpclock/internal/methodrules", "grpclock/internal/methodcall"},
}

func TestImports_RunOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./...") {
		path, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			t.Errorf("package %s is at the root of the module: move it into a folder", p.ImportPath)
			continue
		}
		checkImports(t, path, p.Imports)
	}
}

func checkImports(t *testing.T, path string, imports []string) {
	t.Helper()
	from := part(t, path)
	for _, imported := range imports {
		target, ours := strings.CutPrefix(imported, module)
		if !ours {
			continue
		}
		if to := part(t, target); to != from && !slices.Contains(layers[from], to) {
			t.Errorf("%s imports %s: within this module, %s may import only itself and %q", path, target, from, layers[from])
		}
	}
}

// part returns the longest key of layers that is a prefix of path.
func part(t *testing.T, path string) string {
	t.Helper()
	found := ""
	for name := range layers {
		if len(name) > len(found) && (path == name || strings.HasPrefix(path, name+"/")) {
			found = name
		}
	}
	if found == "" {
		t.Errorf("package %s belongs to no part: add it to layers in this file, with the parts that it may import", path)
	}
	return found
}

// heavy maps a part to the modules that it must not link, directly or indirectly.
var heavy = map[string][]string{
	"core": {
		"github.com/expr-lang/", "github.com/gin-gonic/", "google.golang.org/", "go.opentelemetry.io/",
		"gopkg.in/yaml", "go.yaml.in/", "github.com/goccy/go-yaml", "github.com/alicebob/", "go.uber.org/goleak",
		"github.com/anishathalye/",
	},
	"core/fence": {
		"github.com/expr-lang/", "github.com/gin-gonic/", "google.golang.org/", "go.opentelemetry.io/",
		"gopkg.in/yaml", "go.yaml.in/", "github.com/goccy/go-yaml", "github.com/alicebob/",
	},
	"core/ruleset":                {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/", "github.com/redis/", "github.com/alicebob/"},
	"core/aspect":                 {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/", "github.com/alicebob/"},
	"failpolicy":                  {"github.com/", "google.golang.org/", "go.opentelemetry.io/"},
	"keyexpr":                     {"github.com/gin-gonic/", "google.golang.org/", "go.opentelemetry.io/", "github.com/redis/"},
	"core/internal/httpvars":      {"github.com/gin-gonic/", "google.golang.org/", "go.opentelemetry.io/", "github.com/redis/"},
	"grpclock/internal/protovars": {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/", "github.com/redis/"},
	"ginlock":                     {"google.golang.org/grpc", "go.opentelemetry.io/", "github.com/alicebob/"},
	"grpclock":                    {"github.com/gin-gonic/", "connectrpc.com/", "go.opentelemetry.io/otel/sdk", "github.com/alicebob/"},
	"grpclock/lockpb": {
		"github.com/", "google.golang.org/grpc", "google.golang.org/genproto", "go.opentelemetry.io/",
	},
	"grpclock/protorules": {
		"github.com/gin-gonic/", "github.com/redis/", "github.com/expr-lang/", "github.com/bufbuild/", "github.com/alicebob/",
		"google.golang.org/grpc", "google.golang.org/genproto", "go.opentelemetry.io/",
	},
	"grpclock/connectlock":         {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/", "github.com/alicebob/"},
	"grpclock/internal/methodcall": {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/", "github.com/alicebob/"},
	"telemetry":                    {"github.com/gin-gonic/", "google.golang.org/grpc", "go.opentelemetry.io/otel/sdk", "github.com/alicebob/"},
}

func TestDependencies_LockAlone(t *testing.T) {
	t.Parallel()
	for path, forbidden := range heavy {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, "-deps", "./"+path) {
				if name, bad := linked(p.ImportPath, forbidden); bad {
					t.Errorf("%s links %s of the forbidden module %s; to find out why, run: go mod why %s", path, p.ImportPath, name, p.ImportPath)
				}
			}
		})
	}
}

// linked returns the forbidden module to which a package belongs, if any. Packages of this module are never
// forbidden, although their paths match some prefixes.
func linked(path string, forbidden []string) (string, bool) {
	if strings.HasPrefix(path, module) {
		return "", false
	}
	for _, prefix := range forbidden {
		if strings.HasPrefix(path, prefix) {
			return prefix, true
		}
	}
	return "", false
}
