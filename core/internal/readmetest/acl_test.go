package readmetest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The rows of the table of rights.
const (
	tokens     = "fencing tokens"
	readWrite  = "read and write locks"
	fair       = "fair locks"
	semaphores = "semaphores and latches"
	groupLocks = "group locks"
	inCluster  = "a Cluster"
)

// TestReadme_ACLSuffices lets users with the documented rights use every operation of locks. Each user has
// the rights for some kinds only. Redis must not have refused any command.
func TestReadme_ACLSuffices(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		srv := binary.Start(t)
		admin := srv.Client()
		for _, group := range aclGroups() {
			t.Run(group.user, func(t *testing.T) {
				t.Parallel()
				setUser(t, admin, group.user, group.rows...)
				group.use(t, func() redis.UniversalClient {
					return srv.Client(func(o *redis.Options) {
						o.Username, o.Password, o.DisableIdentity = group.user, "secret", true
					})
				})
				wantNothingRefused(t, admin, group.user)
			})
		}
	})
}

// TestReadme_ACLSufficesInACluster does the same in a Cluster, with the documented additions.
func TestReadme_ACLSufficesInACluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		cluster := binary.StartCluster(t)
		for _, group := range aclGroups() {
			t.Run(group.user, func(t *testing.T) {
				t.Parallel()
				for _, m := range cluster.Masters {
					setUser(t, m.Client(), group.user, append(group.rows, inCluster)...)
				}
				group.use(t, func() redis.UniversalClient {
					return cluster.Client(func(o *redis.ClusterOptions) {
						o.Username, o.Password, o.DisableIdentity = group.user, "secret", true
					})
				})
				for _, m := range cluster.Masters {
					wantNothingRefused(t, m.Client(), group.user)
				}
			})
		}
	})
}

// TestReadme_ACLSufficesForScripts checks that the rights include every command of every script. Some scripts
// run seldom, for example to clean up after an unanswered command.
func TestReadme_ACLSufficesForScripts(t *testing.T) {
	t.Parallel()
	of := map[string][]string{
		"read": {tokens, readWrite}, "write": {tokens, readWrite}, "fair": {tokens, fair},
		"semaphore": {semaphores}, "plain_semaphore": {semaphores}, "latch": {semaphores},
		"group": {groupLocks},
	}
	for _, kind := range redisstore.NewKinds().All() {
		rows, known := of[kind.Name]
		if !known {
			rows = []string{tokens}
		}
		rights := aclRules(t, rows...)
		for operation, source := range kind.Sources() {
			for _, m := range scriptCommand.FindAllStringSubmatch(source, -1) {
				command := "+" + strings.ToLower(m[1])
				if !slices.ContainsFunc(rights, func(r any) bool { return r == command || strings.HasPrefix(r.(string), command+"|") }) {
					t.Errorf("the script %s of %s locks needs the right to %s", operation, kind.Name, command)
				}
			}
		}
	}
}

// aclRules returns the documented rights of a user: the block that begins with a key pattern, and
// rows of the table after it.
func aclRules(t *testing.T, kinds ...string) []any {
	t.Helper()
	var rules []any
	add := func(text string) {
		for rule := range strings.FieldsSeq(text) {
			rules = append(rules, rule)
		}
	}
	add(aclBlock(t, "resetchannels ~shop:* &"))
	table := rows(t, operating, "Rights")
	for _, kind := range kinds {
		i := slices.IndexFunc(table, func(row []string) bool { return row[0] == kind })
		if i < 0 {
			t.Fatalf("%s has no rights for %s", operating, kind)
		}
		add(plain(table[i][1]))
	}
	return rules
}

// aclBlock returns the block of the text that begins with first.
func aclBlock(t *testing.T, first string) string {
	t.Helper()
	lines := strings.Split(read(t, operating), "\n")
	begin := slices.IndexFunc(lines, func(text string) bool { return strings.HasPrefix(text, first) })
	if begin < 0 {
		t.Fatalf("%s has no block that begins with %s", operating, first)
	}
	end := slices.IndexFunc(lines[begin:], func(text string) bool { return strings.HasPrefix(text, "```") })
	return strings.Join(lines[begin:begin+end], " ")
}

func setUser(t *testing.T, admin *redis.Client, user string, kinds ...string) {
	t.Helper()
	rules := []string{"on", ">secret"}
	for _, rule := range aclRules(t, kinds...) {
		rules = append(rules, rule.(string))
	}
	setRules(t, admin, user, rules)
}

// setRules creates a user. As documented, Redis 6 does not have the commands of sharded pub/sub.
func setRules(t *testing.T, admin *redis.Client, user string, rules []string) {
	t.Helper()
	if strings.Contains(admin.Info(t.Context(), "server").Val(), "redis_version:6.") {
		rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
			return rule == "+spublish" || rule == "+ssubscribe" || rule == "+sunsubscribe"
		})
	}
	if err := admin.ACLSetUser(t.Context(), user, rules...).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantNothingRefused(t *testing.T, admin *redis.Client, user string) {
	t.Helper()
	refused, err := admin.ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range refused {
		if e.Username == user && e.Object != "client" { // Redis 6 logs CLIENT MAINT_NOTIFICATIONS of go-redis, an unknown command
			t.Errorf("Redis refused %s %s (%s)", e.Reason, e.Object, e.Context)
		}
	}
}

func openLocks(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append(opts, core.WithPrefix("shop:"), core.WithBackendTimeout(10*time.Second))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	return locks
}
