package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bufbuild/protocompile"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// goldenRun is a call of the program whose result is in a golden file.
type goldenRun struct {
	name string
	args []string
}

// runs contains the calls that need no Redis. $SHOP, $TYPO and $KINDS stand for images.
var runs = []goldenRun{
	{"usage_help", []string{"help"}},
	{"usage_help_check", []string{"help", "check"}},
	{"usage_help_unknown", []string{"help", "chekc"}},
	{"usage_command", []string{"chek", "testdata/locks.yaml"}},
	{"usage_command_far", []string{"deploy"}},
	{"usage_flag", []string{"check", "testdata/locks.yaml", "--descriptor", "x"}},
	{"usage_flag_far", []string{"check", "testdata/locks.yaml", "--zzz"}},
	{"usage_flag_none", []string{"hash", "--zzz", "x"}},
	{"usage_flag_value", []string{"check", "testdata/locks.yaml", "--routes"}},
	{"usage_format", []string{"check", "testdata/locks.yaml", "--format", "xml"}},
	{"usage_no_file", []string{"check"}},
	{"usage_two_files", []string{"check", "a.yaml", "b.yaml"}},
	{"unreadable_file", []string{"check", "testdata/no.yaml"}},
	{"unreadable_routes", []string{"check", "testdata/locks.yaml", "--routes", "testdata/no.json"}},
	{"unreadable_routes_format", []string{"check", "testdata/locks.yaml", "--routes", "testdata/sample.json"}},
	{"unreadable_routes_null", []string{"check", "testdata/locks.yaml", "--routes", "testdata/routes_null.json"}},
	{"unreadable_routes_names", []string{"check", "testdata/locks.yaml", "--routes", "testdata/routes_names.json"}},
	{"unreadable_descriptors", []string{"check", "testdata/locks.yaml", "--descriptors", "testdata/locks.yaml"}},
	{"unreadable_old", []string{"check", "testdata/locks.yaml", "--against", "testdata/wrong_strategy.yaml"}},

	{"check_fine", []string{"check", "testdata/locks.yaml"}},
	{"check_with_descriptors", []string{"check", "testdata/locks.yaml", "--descriptors", "$SHOP"}},
	{"check_wrong_strategy", []string{"check", "testdata/wrong_strategy.yaml"}},
	{"check_wrong_names", []string{"check", "--descriptors", "$SHOP", "testdata/wrong_names.yaml"}},
	{"check_wrong_names_json", []string{"check", "--descriptors", "$SHOP", "testdata/wrong_names.yaml", "--format", "json"}},
	{"check_wrong_names_github", []string{"check", "--descriptors", "$SHOP", "testdata/wrong_names.yaml", "--format=github"}},
	{"check_wrong_options", []string{"check", "--descriptors", "$TYPO"}},
	{"check_kinds_options", []string{"check", "--descriptors", "$KINDS"}},
	{"check_kinds", []string{"check", "testdata/kinds.yaml", "--descriptors", "$KINDS"}},
	{"check_kinds_mended", []string{"check", "testdata/kinds_mended.yaml", "--descriptors", "$KINDS"}},
	{"check_options", []string{"check", "--descriptors", "$SHOP"}},
	{"check_options_missing", []string{"check", "testdata/overlaid.yaml", "--descriptors", "$SHOP"}},
	{"check_program", []string{"check", "testdata/program.yaml", "--routes", "testdata/routes.json", "--descriptors", "$SHOP"}},
	{"check_program_unknown", []string{"check", "testdata/program.yaml"}},
	{"check_grpc", []string{"check", "testdata/grpc.yaml", "--descriptors", "$SHOP"}},
	{"check_names", []string{"check", "testdata/names.yaml"}},
	{"check_wildcards", []string{"check", "testdata/wild.yaml", "--routes", "testdata/routes.json"}},
	{"check_wildcards_unknown", []string{"check", "testdata/wild.yaml"}},
	{"check_warnings", []string{"check", "testdata/warnings.yaml"}},
	{"check_against", []string{"check", "testdata/rekeyed.yaml", "--against", "testdata/locks.yaml"}},
	{"check_against_overlaid", []string{"check", "testdata/rekeyed.yaml", "--against", "testdata/locks.yaml", "--descriptors", "$SHOP"}},
	{"check_against_allowed", []string{"check", "testdata/rekey_allowed.yaml", "--against", "testdata/locks.yaml"}},
	{"check_against_itself", []string{"check", "testdata/locks.yaml", "--against", "testdata/locks.yaml"}},
	{"check_services", []string{"check", "testdata/services.yaml", "--service", "shop"}},
	{"check_services_unknown", []string{"check", "testdata/services.yaml"}},
	{"check_services_near", []string{"check", "testdata/services.yaml", "--service", "shopp"}},
	{"check_services_far", []string{"check", "testdata/services.yaml", "--service", "billing"}},
	{"check_switched", []string{"check", "testdata/switched.yaml"}},
	{"check_profiles", []string{"check", "testdata/profiles.yaml", "--service", "shop"}},
	{"check_profiles_options", []string{"check", "testdata/profiles.yaml", "--service", "shop", "--descriptors", "$TYPO"}},
	{"check_elsewhere", []string{"check", "testdata/elsewhere.yaml", "--descriptors", "$SHOP"}},
	{"check_variable", []string{"check", "testdata/locks.yaml", "--routes", "testdata/routes_bare.json"}},
	{"check_against_unlocked", []string{"check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml"}},
	{"check_against_switched_off", []string{"check", "testdata/switched_off.yaml", "--against", "testdata/empty.yaml", "--descriptors", "$SHOP"}},
	{"check_against_switched", []string{"check", "testdata/switched.yaml", "--against", "testdata/locked.yaml"}},
	{"check_against_replaced", []string{"check", "testdata/replaced.yaml", "--against", "testdata/warnings.yaml"}},
	{"check_against_unknown", []string{"check", "testdata/locks.yaml", "--against", "testdata/no.yaml"}},

	{"dump_overlaid", []string{"dump", "testdata/locks.yaml", "--descriptors", "$SHOP"}},
	{"dump_options", []string{"dump", "--descriptors", "$SHOP"}},
	{"dump_services_near", []string{"dump", "testdata/services.yaml", "--service", "shopp"}},
	{"dump_services_unknown", []string{"dump", "testdata/services.yaml"}},
	{"dump_invalid", []string{"dump", "testdata/wrong_strategy.yaml"}},
	{"dump_invalid_options", []string{"dump", "--descriptors", "$TYPO"}},

	{"key_http", []string{"key", "testdata/locks.yaml", "POST /orders/4%202/pay?mode=now", "--prefix", "shop:", "--hash"}},
	{"key_http_when", []string{"key", "testdata/locks.yaml", "POST /orders/42/pay?mode=async"}},
	{"key_http_routes", []string{"key", "testdata/locks.yaml", "POST /orders/open/pay", "--routes", "testdata/routes.json"}},
	{"key_http_no_route", []string{"key", "testdata/locks.yaml", "POST /orders", "--routes", "testdata/routes.json"}},
	{"key_http_no_rule", []string{"key", "testdata/locks.yaml", "GET /orders/42/pay"}},
	{"key_http_variable", []string{"key", "testdata/locks.yaml", "POST /cart", "-H", "Cookie: session=a%20b", "--var", "user=ann"}},
	{"key_http_variable_missing", []string{"key", "testdata/locks.yaml", "POST /cart", "-H", "Cookie: session=1"}},
	{"key_http_variable_unset", []string{"key", "testdata/locks.yaml", "POST /cart", "-H", "Cookie: session=1", "--routes", "testdata/routes.json"}},
	{"key_http_missing", []string{"key", "testdata/locks.yaml", "POST /cart", "--var", "user=ann"}},
	{"key_http_variable_typed", []string{"key", "testdata/served.yaml", "POST /orders/42/pay?mode=async", "-d", "{\"items\": [{\"count\": 1}]}", "--routes", "testdata/routes.json", "--var", "principal={\"Tenant\": \"a\"}"}},
	{"key_http_variable_wrong", []string{"key", "testdata/served.yaml", "POST /orders/42/pay", "--routes", "testdata/routes.json", "--var", "principal=a"}},
	{"key_http_preflight", []string{"key", "testdata/route.yaml", "OPTIONS /admin/users/3", "-H", "Origin: https://a.example", "-H", "Access-Control-Request-Method: PUT"}},
	{"key_http_no_path", []string{"key", "testdata/locks.yaml", "POST orders"}},
	{"key_http_long_body", []string{"key", "testdata/sampled.yaml", "POST /orders/42/pay", "-d", `{"sku": "a", "text": "` + strings.Repeat("long ", 50) + `"}`}},
	{"key_http_bad_body", []string{"key", "testdata/sampled.yaml", "POST /orders/42/pay", "-d", "{", "-H", "Content-Type: application/json"}},
	{"key_http_list", []string{"key", "testdata/disabled.yaml", "POST /d", "-d", `{"list": ["b", "a"]}`}},
	{"key_http_form", []string{"key", "testdata/disabled.yaml", "POST /e", "-d", "x=1", "--var", "client_ip=192.0.2.7"}},
	{"key_http_client_ip", []string{"key", "testdata/disabled.yaml", "POST /e", "-d", "x=1"}},
	{"key_http_disabled", []string{"key", "testdata/disabled.yaml", "POST /a/1"}},
	{"key_http_dry_run", []string{"key", "testdata/disabled.yaml", "POST /b/1"}},
	{"key_http_none", []string{"key", "testdata/disabled.yaml", "POST /c"}},
	{"key_http_wildcard_route", []string{"key", "testdata/route.yaml", "POST /admin/users/3?x=1"}},
	{"key_http_wildcard_route_in_condition", []string{"key", "testdata/route.yaml", "POST /admin/users/3?x=1&y=2"}},
	{"key_http_wildcard_routes", []string{"key", "testdata/route.yaml", "POST /admin/users/3?x=1", "--routes", "testdata/routes_bare.json"}},
	{"key_http_wildcard_parameter", []string{"key", "testdata/route.yaml", "DELETE /users/3"}},
	{"key_http_route", []string{"key", "testdata/route.yaml", "PUT /admin/users/3"}},
	{"key_http_wildcard", []string{"key", "testdata/disabled.yaml", "POST /api/a/b?x=1"}},
	{"key_grpc", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Pay", "-d", `{"order_id": "42"}`, "--descriptors", "$SHOP"}},
	{"key_grpc_options", []string{"key", "/shop.v1.Orders/Pay", "-d", `{"order_id": 7, "sku": "a"}`, "--descriptors", "$SHOP"}},
	{"key_grpc_metadata", []string{"key", "testdata/overlaid.yaml", "/shop.v1.Orders/Cancel", "-H", "Tenant: a", "--var", "user=ann"}},
	{"key_grpc_peer", []string{"key", "testdata/grpc.yaml", "/shop.v1.Orders/Cancel", "--var", "peer=192.0.2.7"}},
	{"key_grpc_no_peer", []string{"key", "testdata/grpc.yaml", "/shop.v1.Orders/Cancel"}},
	{"key_grpc_wildcard", []string{"key", "testdata/grpc.yaml", "/shop.v2.Orders/Pay", "-H", "tenant: a", "-H", "tenant: b"}},
	{"key_grpc_no_descriptors", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Cancel"}},
	{"key_grpc_bad_data", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Pay", "-d", `{"orderr_id": "42"}`, "--descriptors", "$SHOP"}},
	{"key_grpc_no_method", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Pya", "--descriptors", "$SHOP"}},
	{"key_grpc_no_rule", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Watch", "--descriptors", "$SHOP"}},
	{"key_grpc_none", []string{"key", "testdata/route.yaml", "/shop.v1.Orders/Watch", "--descriptors", "$SHOP"}},
	{"key_grpc_none_option", []string{"key", "/typo.v1.Orders/Ping", "--descriptors", "$TYPO"}},
	{"key_grpc_elsewhere", []string{"key", "testdata/locks.yaml", "/shop.v1.Orders/Pay"}},
	{"key_grpc_elsewhere_no_option", []string{"key", "testdata/elsewhere.yaml", "/shop.v1.Orders/Cancel", "--descriptors", "$SHOP"}},
	{"key_func", []string{"key", "testdata/locks.yaml", "close-day"}},
	{"key_func_constant", []string{"key", "testdata/functions.yaml", "close-day", "--prefix", "eu:"}},
	{"key_func_of_words", []string{"key", "testdata/functions.yaml", "close the year"}},
	{"key_func_as_in_the_file", []string{"key", "testdata/functions.yaml", "func: close the year"}},
	{"key_func_as_in_the_file_near", []string{"key", "testdata/functions.yaml", "func: close the yeer"}},
	{"key_func_condition", []string{"key", "testdata/functions.yaml", "close-month"}},
	{"key_func_elsewhere", []string{"key", "testdata/functions.yaml", "elsewhere"}},
	{"check_functions", []string{"check", "testdata/functions.yaml"}},
	{"key_func_none", []string{"key", "testdata/route.yaml", "nothing"}},
	{"wire_no_redis", []string{"wire"}},
	{"wire_arguments", []string{"wire", "--redis", "redis://127.0.0.1:1", "shop:"}},
	{"wire_mode", []string{"wire", "--redis", "redis://127.0.0.1:1", "--pubsub", "on"}},
	{"wire_url", []string{"wire", "--redis", "redis://shop:sec%ret@127.0.0.1:1/0"}},
	{"wire_url_of_a_cluster", []string{"wire", "--cluster", "--redis", "redis://shop:sec%ret@127.0.0.1:1"}},
	{"wire_url_of_a_sentinel", []string{"wire", "--redis", "redis://127.0.0.1:1/a?master_name=main"}},
	{"key_near_function", []string{"key", "testdata/locks.yaml", "closeday"}},
	{"key_lower_case_method", []string{"key", "testdata/locks.yaml", "post /orders/42/pay"}},
	{"key_not_a_request", []string{"key", "testdata/locks.yaml", "open-day"}},
	{"key_two_inputs", []string{"key", "-", "POST /cart", "-d", "@-"}},
	{"check_two_inputs", []string{"check", "-", "--against", "-"}},
	{"key_no_arguments", []string{"key", "testdata/locks.yaml"}},
	{"key_bad_header", []string{"key", "testdata/locks.yaml", "POST /cart", "-H", "Cookie"}},
	{"key_bad_variable", []string{"key", "testdata/locks.yaml", "POST /cart", "--var", "user"}},
	{"key_no_data", []string{"key", "testdata/locks.yaml", "POST /cart", "-d", "@testdata/no.json"}},

	{"hash", []string{"hash", "shop:order:pay:42"}},
	{"hash_nothing", []string{"hash"}},
	{"schema_arguments", []string{"schema", "x"}},
	{"proto_nowhere", []string{"proto"}},
}

func TestRun_Golden(t *testing.T) {
	t.Parallel()
	shop := compileImage(t, protocompile.SourceInfoStandard, shopProto)
	typo := compileImage(t, protocompile.SourceInfoStandard, typoProto)
	kinds := compileImage(t, protocompile.SourceInfoStandard, kindsProto)
	images := strings.NewReplacer("$SHOP", shop, "$TYPO", typo, "$KINDS", kinds)
	names := strings.NewReplacer(shop, "$SHOP", typo, "$TYPO", kinds, "$KINDS")
	seen := map[string]bool{}
	for _, c := range runs {
		if seen[c.name] {
			t.Errorf("two runs have the name %s", c.name)
		}
		seen[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := slices.Clone(c.args)
			for i := range args {
				args[i] = images.Replace(args[i])
			}
			golden.Assert(t, rulesettest.WithoutLists(names.Replace(interlock(t, "", args...).String())), "golden/"+c.name+".txt")
		})
	}
}

// redisRun is a call that asks a Redis, $REDIS, whose result is in a golden file.
type redisRun struct {
	goldenRun

	stdin string
}

var redisRuns = []redisRun{
	{goldenRun{"ls", []string{"ls", "shop:", "--redis", "$REDIS"}}, ""},
	{goldenRun{"ls_counts", []string{"ls", "shop:", "--redis", "$REDIS", "--counts"}}, ""},
	{goldenRun{"ls_json", []string{"ls", "shop:f", "--redis", "-", "--json"}}, "$REDIS"},
	{goldenRun{"ls_none", []string{"ls", "nothing:", "--redis", "$REDIS"}}, ""},
	{goldenRun{"ls_none_json", []string{"ls", "nothing:", "--json", "--redis", "$REDIS"}}, ""},
	{goldenRun{"ls_hostile", []string{"ls", "bad:", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_hostile", []string{"who", "bad:field", "--redis", "$REDIS"}}, ""},
	{goldenRun{"ls_no_redis", []string{"ls"}}, ""},
	{goldenRun{"ls_arguments", []string{"ls", "a", "b"}}, ""},
	{goldenRun{"ls_down", []string{"ls", "--redis", "redis://shop:secret@127.0.0.1:1"}}, ""},

	{goldenRun{"who", []string{"who", "shop:plain", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_fair", []string{"who", "shop:fair", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_fenced", []string{"who", "shop:fenced", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_read", []string{"who", "shop:read", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_permits", []string{"who", "shop:permits", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_count", []string{"who", "shop:count", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_json", []string{"who", "shop:write", "--redis", "$REDIS", "--json"}}, ""},
	{goldenRun{"who_free", []string{"who", "shop:gone", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_not_a_lock", []string{"who", "shop:text", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_no_key", []string{"who", "--redis", "$REDIS"}}, ""},

	{goldenRun{"release_yes", []string{"release", "go:plain", "--redis", "$REDIS", "--yes"}}, ""},
	{goldenRun{"release_agreed", []string{"release", "go:read", "--redis", "$REDIS"}}, "y\n"},
	{goldenRun{"release_json", []string{"release", "go:write", "--redis", "$REDIS", "--yes", "--json"}}, ""},
	{goldenRun{"release_refused", []string{"release", "shop:plain", "--redis", "$REDIS"}}, "n\n"},
	{goldenRun{"release_unanswered", []string{"release", "shop:plain", "--redis", "$REDIS"}}, ""},
	{goldenRun{"release_other_holder", []string{"release", "shop:plain", "--redis", "$REDIS", "--yes", "--holder", bob}}, ""},
	{goldenRun{"release_one_holder", []string{"release", "go:readers", "--redis", "$REDIS", "--holder", ann}}, "y\n"},
	{goldenRun{"release_empty_holder", []string{"release", "shop:plain", "--redis", "$REDIS", "--yes", "--holder", ""}}, ""},
	{goldenRun{"release_cart", []string{"release", "cart:43", "--redis", "$REDIS", "--yes"}}, ""},
	{goldenRun{"release_cart_holder", []string{"release", "cart:43", "--redis", "$REDIS", "--yes", "--holder", "sku:7"}}, ""},
	{goldenRun{"ls_cart", []string{"ls", "cart:", "--redis", "$REDIS"}}, ""},
	{goldenRun{"who_cart", []string{"who", "cart:43", "--redis", "$REDIS"}}, ""},
	{goldenRun{"release_free", []string{"release", "shop:gone", "--redis", "$REDIS"}}, ""},
	{goldenRun{"release_not_a_lock", []string{"release", "shop:text", "--redis", "$REDIS"}}, ""},
	{goldenRun{"release_count", []string{"release", "shop:count", "--redis", "$REDIS", "--yes"}}, ""},
	{goldenRun{"release_two_inputs", []string{"release", "shop:plain", "--redis", "-"}}, "$REDIS"},
}

// fill writes locks of every kind to a Redis, in Redisson's layout. Their leases are endless, or so long that
// ls shows only minutes.
func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		ctx := t.Context()
		for _, key := range []string{"shop:plain", "go:plain"} {
			p.HSet(ctx, key, ann, 2)
			p.PExpire(ctx, key, 100*time.Hour)
		}
		p.HSet(ctx, "shop:fair", ann, 1)
		p.RPush(ctx, "redisson_lock_queue:{shop:fair}", bob, "6c84fb90-12c4-11e1-840d-7b25c5ee775a:3")
		p.RPush(ctx, "redisson_lock_queue:{shop:free}", bob)
		p.HSet(ctx, "shop:fenced", ann, 1)
		p.Set(ctx, "redisson_lock_token:{shop:fenced}", 1754000000000123, 0)
		for _, key := range []string{"shop:read", "go:read", "go:readers"} {
			p.HSet(ctx, key, "mode", "read", ann, 1, bob, 1)
			p.Set(ctx, "{"+key+"}:"+ann+":rwlock_timeout:1", 1, 0)
			p.Set(ctx, "{"+key+"}:"+bob+":rwlock_timeout:1", 1, 99*time.Hour)
		}
		p.HSet(ctx, "shop:write", "mode", "write", ann+":write", 1)
		p.HSet(ctx, "go:write", "mode", "write", ann+":write", 1)
		p.Set(ctx, "shop:permits", 4, 0)
		p.ZAdd(ctx, "{shop:permits}:timeout", redis.Z{Score: 922337203685477, Member: "0123456789abcdef"})
		p.Set(ctx, "shop:count", 5, 0)
		p.Set(ctx, "shop:text", "Ada", 0)
		p.HSet(ctx, "cart:43", "sku:7", 2)
		for _, key := range []string{"\x1b[31mred", "two\nlines", "<b>", strings.Repeat("long", 2500), `"`, "\u202ertl", "e\u0301", "\u00a0"} {
			p.HSet(ctx, "bad:"+key, ann, 1)
		}
		p.HSet(ctx, "bad:field", ann, 1)
		p.RPush(ctx, "redisson_lock_queue:{bad:field}", "\x1b[2J:1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The results of the commands that ask a Redis match their golden files.
func TestRun_GoldenRedis(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb := srv.Client()
	fill(t, rdb)
	url := strings.NewReplacer("$REDIS", "redis://"+srv.Addr())
	for _, c := range redisRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for _, arg := range c.args {
				args = append(args, url.Replace(arg))
			}
			golden.Assert(t, interlock(t, url.Replace(c.stdin), args...).String(), "golden/"+c.name+".txt")
		})
	}
	t.Cleanup(func() { // after all subtests
		ctx := context.WithoutCancel(t.Context())
		for key, want := range map[string]int64{"go:plain": 0, "go:read": 0, "go:write": 0, "go:readers": 1, "cart:43": 1, "shop:plain": 1, "shop:text": 1, "shop:count": 1} {
			if got := rdb.Exists(ctx, key).Val(); got != want {
				t.Errorf("%s: got %d keys, want %d", key, got, want)
			}
		}
	})
}

func TestRun_GoldenFilesInUse(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txt")
		ofARedis := slices.ContainsFunc(redisRuns, func(a redisRun) bool { return a.name == name })
		if !ofARedis && !slices.ContainsFunc(runs, func(r goldenRun) bool { return r.name == name }) {
			t.Errorf("no run has the golden file %s: remove it", f.Name())
		}
	}
}
