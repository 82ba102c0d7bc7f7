package inspecting_test

import (
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// preflightKinds are the kinds that a preflight can try.
var preflightKinds = []core.Kind{
	core.KindReentrant, core.KindFenced, core.KindSpin, core.KindRead, core.KindWrite, core.KindFair,
	core.KindSemaphore, core.KindPlainSemaphore, core.KindLatch,
}

// checkOf returns the check of a name, which must exist.
func checkOf(t *testing.T, report core.PreflightReport, kind core.Kind, name string) core.PreflightCheck {
	t.Helper()
	for _, c := range report.Checks {
		if c.Kind == kind && strings.HasPrefix(c.Name, name) {
			return c
		}
	}
	t.Fatalf("no check %q of kind %q in\n%s", name, kind, report)
	return core.PreflightCheck{}
}

func TestClient_Preflight(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		seen := &locktest.Recorder{}
		locks := b.Locks(core.WithPrefix("shop:"), core.WithObserver(seen.Observer()))
		report, err := locks.Preflight(t.Context(), preflightKinds...)
		locktest.Must(t, err)
		if report.Err() != nil {
			t.Errorf("something does not work:\n%s", report)
		}
		for _, kind := range preflightKinds {
			checkOf(t, report, kind, "release")
		}
		for _, name := range []string{"keep another client out", "re-enter", "renew", "hand off", "notify", "several keys", "renew several keys", "release several keys"} {
			checkOf(t, report, core.KindReentrant, name)
		}
		if keys := b.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("the probes have left %q", keys)
		}
		if events := seen.Names(); len(events) > 0 {
			t.Errorf("an observer of the client saw probes: %v", events)
		}
		if holds := locks.Holds(); len(holds) > 0 {
			t.Errorf("the client has holds: %v", holds)
		}
	})
}

func TestClient_Preflight_Cluster(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, redisserver.StartCluster(t).Client(), locktest.Patient)
	report, err := locks.Preflight(t.Context(), preflightKinds...)
	if err != nil || report.Err() != nil {
		t.Errorf("got %v:\n%s", err, report)
	}
	if len(report.Servers) < 2 {
		t.Errorf("servers %q: want every master", report.Servers)
	}
}

// TestClient_Preflight_Rights gives a user without rights exactly the rights that the report advises.
func TestClient_Preflight_Rights(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		srv := binary.Start(t)
		admin := srv.Client()
		locks := locktest.NewClient(t, srv.Client(func(o *redis.Options) {
			o.Username, o.Password, o.DisableIdentity = "shop", "secret", true
		}), locktest.Patient, core.WithPrefix("shop:"))
		setUser := func(rules ...any) {
			t.Helper()
			locktest.Must(t, admin.Do(t.Context(), append([]any{"acl", "setuser", "shop"}, append(rules, "on", ">secret")...)...).Err())
		}
		for _, c := range []struct {
			rules []any
			fails string
		}{
			{nil, "answer"},
			{[]any{"+ping"}, "acquire"},
			{[]any{"+@all", "~*", "&none"}, "notify"},
			{[]any{"+@all", "~*", "&*", "-pexpire"}, "acquire"},
			{[]any{"+@all", "~*", "&*", "-publish"}, "notify"},
		} {
			setUser(append([]any{"reset", "resetchannels"}, c.rules...)...)
			report, err := locks.Preflight(t.Context(), preflightKinds...)
			locktest.Must(t, err)
			kind := core.KindReentrant
			if c.fails == "answer" {
				kind = ""
			}
			failed := checkOf(t, report, kind, c.fails)
			line, ok := strings.CutPrefix(failed.Advice, "ACL SETUSER shop ")
			if failed.Err == nil || !ok {
				t.Fatalf("%v: %s: got %v, advice %q", c.rules, c.fails, failed.Err, failed.Advice)
			}
			line, _, _ = strings.Cut(line, ";")
			var rules []any
			setUser("reset", "resetchannels") // Redis 6.2 allows all channels by default
			for rule := range strings.FieldsSeq(line) {
				rules = append(rules, rule)
			}
			setUser(rules...)
			report, err = locks.Preflight(t.Context(), preflightKinds...)
			if err != nil || report.Err() != nil {
				t.Fatalf("%v: with the advised rights: %v\n%s", c.rules, err, report)
			}
		}
	})
}

// The advised rights are correct for prefixes with characters that are special in ACL patterns.
func TestClient_Preflight_RightsOfAPrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"{shop}:", "shop[1]:", `shop\*?:`} {
		locktest.Parallel(t, prefix, func(t *testing.T) {
			srv := redisserver.Start(t)
			rights := func(locks *core.Client) []any {
				report, err := locks.Preflight(t.Context(), preflightKinds...)
				if err != nil || report.Err() != nil {
					t.Fatalf("got %v\n%s", err, report)
				}
				rules := []any{"acl", "setuser", "shop", "reset", "on", ">secret"}
				for rule := range strings.FieldsSeq(report.Rights) {
					rules = append(rules, rule)
				}
				return rules
			}
			rules := rights(locktest.NewClient(t, srv.Client(), locktest.Patient, core.WithPrefix(prefix)))
			locktest.Must(t, srv.Client().Do(t.Context(), rules...).Err())
			rights(locktest.NewClient(t, srv.Client(func(o *redis.Options) {
				o.Username, o.Password, o.DisableIdentity = "shop", "secret", true
			}), locktest.Patient, core.WithPrefix(prefix)))
		})
	}
}

func TestClient_Preflight_Server(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		srv := binary.Start(t)
		locks := locktest.NewClient(t, srv.Client(), locktest.Patient)
		set := func(args ...any) {
			t.Helper()
			locktest.Must(t, srv.Client().Do(t.Context(), args...).Err())
		}
		set("config", "set", "maxmemory-policy", "allkeys-lru")
		report, err := locks.Preflight(t.Context())
		policy := checkOf(t, report, "", "maxmemory-policy")
		if err != nil || policy.Err == nil || !strings.Contains(policy.Advice, "noeviction") {
			t.Errorf("an evicting server: got %v, %v, advice %q", err, policy.Err, policy.Advice)
		}
		set("config", "set", "maxmemory-policy", "noeviction")
		set("replicaof", "127.0.0.1", "1")
		report, err = locks.Preflight(t.Context())
		if role := checkOf(t, report, "", "role"); err != nil || role.Err == nil || !strings.Contains(role.Advice, "address of the master") {
			t.Errorf("a replica: got %v, %v, advice %q", err, role.Err, role.Advice)
		}
	})
}

func TestClient_Preflight_NothingToTry(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks := locktest.NewClient(t, srv.Client(), locktest.Patient)
	if _, err := locks.Preflight(t.Context(), core.KindRedlock); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "reentrant") {
		t.Errorf("a Redlock: got %v", err)
	}
	srv.Kill()
	report, err := locks.Preflight(t.Context())
	if answer := checkOf(t, report, "", "answer"); err != nil || !errors.Is(answer.Err, core.ErrUnavailable) {
		t.Errorf("without a server: got %v, %v", err, answer.Err)
	}
	locktest.Must(t, locks.Close(t.Context()))
	if _, err := locks.Preflight(t.Context()); !errors.Is(err, core.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// The report warns of a prefix without a separator.
func TestClient_Preflight_Prefix(t *testing.T) {
	t.Parallel()
	for prefix, advised := range map[string]string{"": "", "shop:": "", "shop-": "", "{shop}": "", "shop": `"shop:"`, "v2": `"v2:"`, "läden": `"läden:"`} {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		t.Cleanup(func() { _ = rdb.Close() })
		report, err := locktest.NewClient(t, rdb, core.WithPrefix(prefix)).Preflight(t.Context())
		locktest.Must(t, err)
		advice := ""
		for _, c := range report.Checks {
			if strings.HasPrefix(c.Name, "prefix") && c.Err == nil {
				advice = c.Advice
			}
		}
		if (advised == "") != (advice == "") || !strings.Contains(advice, advised) || !strings.Contains(report.String(), advice) {
			t.Errorf("prefix %q: got %q\n%s", prefix, advice, report)
		}
	}
}

// A server refuses to delete the probes. The report lists the probes without a lease, which stay.
func TestClient_Preflight_Left(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	proxy, rdb := faultproxy.Around(t, b.Connect())
	locks := locktest.NewClient(t, rdb, locktest.Patient, core.WithPrefix("shop:"))
	proxy.AnswerError(func(cmd []string) bool { return strings.EqualFold(cmd[0], "del") }, "ERR not now")
	report, err := locks.Preflight(t.Context(), core.KindReentrant, core.KindPlainSemaphore)
	locktest.Must(t, err)
	left := checkOf(t, report, core.KindPlainSemaphore, "delete the probe")
	key, ok := strings.CutPrefix(left.Advice, "DEL ")
	if !ok || b.Exists(t.Context(), key).Val() != 1 {
		t.Errorf("advice %q: want the key that is left", left.Advice)
	}
	if leased := checkOf(t, report, core.KindReentrant, "delete the probe"); leased.Err == nil || leased.Advice != "" {
		t.Errorf("a key that expires: got %v, advice %q", leased.Err, leased.Advice)
	}
}

// A server refuses INFO permanently or for a moment. The report advises a right only in the first case.
func TestClient_Preflight_Info(t *testing.T) {
	t.Parallel()
	info := func(cmd []string) bool { return strings.EqualFold(cmd[0], "info") }
	for name, advised := range map[string]bool{"NOPERM": true, "LOADING": false} {
		locktest.Parallel(t, name, func(t *testing.T) {
			proxy, rdb := faultproxy.Around(t, locktest.Real(t).Connect())
			proxy.AnswerError(info, name+" not now")
			report, err := locktest.NewClient(t, rdb, locktest.Patient).Preflight(t.Context(), core.KindLatch)
			if check := checkOf(t, report, "", "INFO"); err != nil || !check.Unseen || (check.Advice != "") != advised {
				t.Errorf("got %v, %v, advice %q", err, check.Err, check.Advice)
			}
		})
	}
}

// An endpoint sends each command to the server of its first key. So a MultiLock and a Lock of another client could hold
// the same key, and no answer of Redis would show it. The report warns of this.
func TestClient_Preflight_Proxy(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, byFirstKey(t), locktest.Patient)
	report, err := locks.Preflight(t.Context())
	several := checkOf(t, report, core.KindReentrant, "several keys")
	if err != nil || several.Err == nil || !strings.Contains(several.Advice, "no MultiLock") {
		t.Errorf("got %v, %v, advice %q", err, several.Err, several.Advice)
	}
	if one := checkOf(t, report, core.KindReentrant, "renew"); one.Err != nil {
		t.Errorf("a single key: got %v", one.Err)
	}
}

// byFirstKey returns a client of an endpoint in front of two servers.
func byFirstKey(t *testing.T) *redis.Client {
	t.Helper()
	shards := []*redis.Client{redistest.New(t).Client(), redistest.New(t).Client()}
	endpoint, err := server.NewServer("127.0.0.1:0")
	locktest.Must(t, err)
	t.Cleanup(endpoint.Close)
	endpoint.SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		key := ""
		switch cmd = strings.ToLower(cmd); {
		case cmd == "hello", cmd == "subscribe":
			c.WriteError("ERR unknown command '" + cmd + "'")
			return true
		case (cmd == "eval" || cmd == "evalsha") && len(args) > 2 && args[1] != "0":
			key = args[2]
		case len(args) > 0:
			key = args[0]
		}
		command := []any{cmd}
		for _, arg := range args {
			command = append(command, arg)
		}
		value, err := shards[crc32.ChecksumIEEE([]byte(key))%2].Do(t.Context(), command...).Result()
		if errors.Is(err, redis.Nil) {
			value, err = nil, nil
		}
		if err != nil {
			value = err
		}
		writeReply(c, value)
		return true
	})
	rdb := redis.NewClient(&redis.Options{Addr: endpoint.Addr().String(), DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func writeReply(c *server.Peer, value any) {
	switch v := value.(type) {
	case error:
		c.WriteError(v.Error())
	case int64:
		c.WriteInt(int(v))
	case string:
		c.WriteBulk(v)
	case []any:
		c.WriteLen(len(v))
		for _, element := range v {
			writeReply(c, element)
		}
	default:
		c.WriteNull()
	}
}

// With WithLossNotice, the advised rights suffice to get notifications.
func TestClient_Preflight_RightsOfLossNotice(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		srv := binary.Start(t)
		admin := srv.Client()
		locktest.Must(t, admin.ConfigSet(t.Context(), "notify-keyspace-events", "Kghzxe").Err())
		user := []any{"acl", "setuser", "shop", "reset", "resetchannels", "on", ">secret"}
		locktest.Must(t, admin.Do(t.Context(), user...).Err())
		locks := locktest.NewClient(t, srv.Client(func(o *redis.Options) {
			o.Username, o.Password, o.DisableIdentity = "shop", "secret", true
		}), locktest.Patient, core.WithPrefix("shop:"), core.WithLossNotice())
		kinds := []core.Kind{core.KindReentrant, core.KindRead, core.KindSemaphore}
		report, err := locks.Preflight(t.Context(), kinds...)
		locktest.Must(t, err)
		for rule := range strings.FieldsSeq(report.Rights) {
			user = append(user, rule)
		}
		locktest.Must(t, admin.Do(t.Context(), user...).Err())
		report, err = locks.Preflight(t.Context(), kinds...)
		if err != nil || report.Err() != nil {
			t.Errorf("got %v\n%s", err, report)
		}
		for _, kind := range kinds {
			checkOf(t, report, kind, "notice of a loss")
		}
	})
}

// With WithLossNotice, the report says that the server sends no notifications.
func TestClient_Preflight_LossNoticeWithoutNotifications(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		report, err := b.Locks(core.WithLossNotice()).Preflight(t.Context())
		locktest.Must(t, err)
		failed := checkOf(t, report, core.KindReentrant, "notice of a loss")
		if failed.Err == nil || !strings.Contains(failed.Advice, `notify-keyspace-events "Kghzxe"`) {
			t.Errorf("got %v, advice %q", failed.Err, failed.Advice)
		}
	})
}
