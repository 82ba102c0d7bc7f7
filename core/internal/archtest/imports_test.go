package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock/"

// layers maps each part to the packages of this module that it may import. A package belongs to the longest part that
// its path begins with. No package may import telemetry.
var layers = map[string][]string{
	"core":                    {"core/internal", "core/internal/missingunit", "core/internal/notify"},
	"core/internal":           {"core/redistest", "core/internal/topology"}, // redistest is test support; what core links is checked below
	"core/redistest":          {"core", "core/internal"},
	"core/ruleset":            {"core/internal/missingunit", "core/internal/notify", "failpolicy"},
	"core/aspect":             {"core", "core/internal/httpvars", "core/internal/notify", "core/internal/preview", "core/ruleset", "keyexpr", "failpolicy"},
	"core/aspect/adaptertest": {"core", "core/aspect", "core/redistest", "core/ruleset", "failpolicy"}, // tests of adapters
	"core/cmd":                {"core", "core/internal/httpvars", "core/internal/topology", "core/internal/preview", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "ginlock", "grpclock", "grpclock/lockpb", "grpclock/proto", "grpclock/protorules"},
	"keyexpr":                 {"failpolicy"}, // the nearest name
	"failpolicy":              {},
	"telemetry":               {"core", "core/aspect", "core/ruleset", "failpolicy"}, // the last two are the words in aspect's observations
	"ginlock":                 {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy"},
	"grpclock":                {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/lockpb", "grpclock/protorules", "grpclock/internal/protovars", "grpclock/internal/methodrules", "grpclock/internal/methodcall"},

	// How all of them call observers, on the standard library.
	"core/internal/missingunit": {},
	"core/internal/notify":      {},

	// How the command asks the adapters, on nothing.
	"core/internal/preview": {},

	// The variables of HTTP requests and of RPCs, on the language.
	"core/internal/httpvars":      {"keyexpr"},
	"grpclock/internal/protovars": {"keyexpr"},

	// The kit of the tests of package core. No product code imports it.
	"core/internal/locktest": {"core", "core/internal", "core/redistest"},

	// What a server says of itself, on the client of Redis.
	"core/internal/topology": {},

	// What a tool that reads .proto files links: neither gRPC nor a lock client.
	"grpclock/lockpb":     {},
	"grpclock/proto":      {},
	"grpclock/protorules": {"core/ruleset", "failpolicy", "grpclock/lockpb"},

	// What guards of gRPC servers and of Connect servers have in common, without either.
	"grpclock/internal/methodrules": {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/protorules", "grpclock/internal/protovars"},
	"grpclock/internal/methodcall":  {"core", "core/aspect", "core/ruleset", "keyexpr", "failpolicy", "grpclock/internal/methodrules"},
	"grpclock/connectlock":          {"core", "core/aspect", "core/ruleset", "grpclock/internal/methodrules", "grpclock/internal/methodcall"},
}

func TestImports_RunOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./...") {
		path, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours {
			t.Errorf("package %s: the module has no package at its root", p.ImportPath)
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
			t.Errorf("%s imports %s: %s may import %q and itself, nothing else of this module", path, target, from, layers[from])
		}
	}
}

// part returns the longest key of layers that path begins with.
func part(t *testing.T, path string) string {
	t.Helper()
	found := ""
	for name := range layers {
		if len(name) > len(found) && (path == name || strings.HasPrefix(path, name+"/")) {
			found = name
		}
	}
	if found == "" {
		t.Errorf("package %s belongs to no part: add it to layers in this file, with what it may import", path)
	}
	return found
}

// heavy are modules that a part must not link, directly or through others.
var heavy = map[string][]string{
	"core": {
		"github.com/expr-lang/", "github.com/gin-gonic/", "google.golang.org/", "go.opentelemetry.io/",
		"gopkg.in/yaml", "go.yaml.in/", "github.com/goccy/go-yaml", "github.com/alicebob/", "go.uber.org/goleak",
		"github.com/anishathalye/",
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

func TestDependencies_OfALockAloneAreFew(t *testing.T) {
	t.Parallel()
	for path, forbidden := range heavy {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, p := range list(t, "-deps", "./"+path) {
				if name, bad := linked(p.ImportPath, forbidden); bad {
					t.Errorf("%s links %s, which has %s; find the way with: go mod why %s", path, p.ImportPath, name, p.ImportPath)
				}
			}
		})
	}
}

// linked returns the forbidden module to which a package belongs, if any. The path of this module
// begins like some of them.
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
