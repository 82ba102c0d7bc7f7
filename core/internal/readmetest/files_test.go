package readmetest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
	_ "github.com/interlock-go/interlock/grpclock/lockpb" // the option in the blocks
	"github.com/interlock-go/interlock/grpclock/protorules"
)

func TestReadme_YAMLBlocksLoad(t *testing.T) {
	t.Parallel()
	for _, b := range all(t, "yaml") {
		if set, err := ruleset.Load(b.file, []byte(b.code)); err != nil || len(set.Rules()) == 0 {
			t.Errorf("%s:%d: %d rules, %v in\n%s", b.file, b.line, len(set.Rules()), err, b.code)
		}
	}
}

func TestReadme_ProtoBlocksCompile(t *testing.T) {
	t.Parallel()
	for _, b := range all(t, "proto") {
		source := "syntax = \"proto3\";\npackage shop.v1;\n" + b.code +
			"message PayRequest { string order_id = 1; }\nmessage PayReply {}\n"
		compiler := protocompile.Compiler{
			Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
				&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"readme.proto": source})},
				&protocompile.SourceResolver{ImportPaths: []string{filepath.Join(root, "grpclock", "proto")}},
			}),
		}
		files, err := compiler.Compile(t.Context(), "readme.proto")
		if err != nil {
			t.Errorf("%s:%d: %v in\n%s", b.file, b.line, err, b.code)
			continue
		}
		wantRule(t, files[0].Services().Get(0).Methods().Get(0))
	}
}

// wantRule requires one usable rule on a method.
func wantRule(t *testing.T, method protoreflect.MethodDescriptor) {
	t.Helper()
	rules, problems := protorules.Of(method)
	if len(rules) != 1 || len(problems) > 0 {
		t.Fatalf("%d rules, %v", len(rules), problems)
	}
	if _, err := ruleset.BuildSet(rules); err != nil {
		t.Error(err)
	}
	if key := rules[0].Rule.Key; !strings.Contains(key, "#{req.") {
		t.Errorf("the key is %q", key)
	}
}
