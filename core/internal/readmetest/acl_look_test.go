package readmetest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// looking is the beginning of the block with the rights for users that only look at locks.
const looking = "~shop:* ~{shop:*"

// TestReadme_ACLSufficesToLook lets a user with the documented rights look at locks of all kinds, and a user
// with the rights for locks free them. Redis must not have refused any command.
func TestReadme_ACLSufficesToLook(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	admin := srv.Client()
	look(t, admin, []*redis.Client{admin}, nil, func(user string) redis.UniversalClient {
		return srv.Client(func(o *redis.Options) { o.Username, o.Password, o.DisableIdentity = user, "secret", true })
	})
}

// TestReadme_ACLSufficesToLookInACluster does the same in a Cluster, with the documented additions.
func TestReadme_ACLSufficesToLookInACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	var nodes []*redis.Client
	for _, m := range cluster.Masters {
		nodes = append(nodes, m.Client())
	}
	look(t, cluster.Client(), nodes, []string{inCluster}, func(user string) redis.UniversalClient {
		return cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password, o.DisableIdentity = user, "secret", true })
	})
}

// look lets one user look at locks and another one free them.
func look(t *testing.T, admin redis.UniversalClient, nodes []*redis.Client, also []string, connect func(user string) redis.UniversalClient) {
	t.Helper()
	var topology []string
	if table := rows(t, operating, "Rights"); len(also) > 0 {
		i := slices.IndexFunc(table, func(row []string) bool { return row[0] == also[0] })
		topology = strings.Fields(plain(table[i][1]))
	}
	looks := slices.Concat(strings.Fields(aclBlock(t, looking)), topology)
	frees := slices.Clone(looks)
	for _, rule := range aclRules(t, append(also, tokens, readWrite, fair, semaphores)...) {
		if rule != "-@all" {
			frees = append(frees, rule.(string))
		}
	}
	for user, rules := range map[string][]string{"looks": looks, "frees": frees} {
		for _, node := range nodes {
			setRules(t, node, user, append([]string{"on", ">secret"}, rules...))
		}
	}
	holds := holdEverything(t, openLocks(t, admin))
	looker, freer := openLocks(t, connect("looks")), openLocks(t, connect("frees"))
	page, err := looker.Locks(t.Context(), core.LockQuery{})
	ok(t, err)
	if len(page.Locks) != len(holds) {
		t.Errorf("listed %d of %d locks", len(page.Locks), len(holds))
	}
	for _, hold := range holds {
		e, err := looker.Inspect(t.Context(), hold.Key())
		ok(t, err)
		if len(e.Holders) != 1 || e.Holders[0].Field != hold.Field() || e.Token != hold.Token() {
			t.Errorf("%s: got %+v", hold.Key(), e)
		}
		_, err = freer.Evict(t.Context(), hold.Key(), hold.Field())
		ok(t, err)
		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) { // Release waits until the lease of a holder that does not release has expired
			t.Errorf("%s was freed by the other user: got %v from Release, want that it is lost", hold.Key(), err)
		}
	}
	for _, node := range nodes {
		wantNothingRefused(t, node, "looks")
		wantNothingRefused(t, node, "frees")
	}
}

// holdEverything holds a lock of each kind.
func holdEverything(t *testing.T, locks *core.Client) (holds []*core.Hold) {
	t.Helper()
	for _, lock := range []core.Lock{
		locks.Lock("plain"), locks.Lock("of{42}"), locks.FencedLock("fenced"), locks.FairLock("fair"), locks.FairLock("fair{1}"),
		locks.ReadLock("read"), locks.ReadLock("read{1}"), locks.WriteLock("write"), locks.Semaphore("permits", 2).Lock,
	} {
		_, hold, err := lock.Acquire(t.Context(), core.LeaseTime(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, hold)
	}
	return holds
}

// TestReadme_ACLSufficesForScriptsThatLook checks that the rights include every command of the script.
func TestReadme_ACLSufficesForScriptsThatLook(t *testing.T) {
	t.Parallel()
	rights := strings.Fields(aclBlock(t, looking))
	_, source, found := strings.Cut(redisstore.InspectSource(), "-- Comes before inspect_key.lua") // the functions before it are not called
	if !found {
		t.Fatal("the script does not contain the head of inspect.lua")
	}
	for _, m := range scriptCommand.FindAllStringSubmatch(source, -1) {
		if command := "+" + strings.ToLower(m[1]); !slices.Contains(rights, command) {
			t.Errorf("the script needs the right to %s", command)
		}
	}
}
