package interop_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// versionsEnv lists the versions of Redisson to test with, separated by commas, or is "all".
const versionsEnv = "INTERLOCK_REDISSON"

// allVersions starts with the first version that has sharded messages in a Cluster. Between them the wire protocol
// changed: the latch of an unlock (3.24), the answers of the fair lock (3.32), the batched renewal (3.44), the ids of
// requests (3.52), WAIT (4.0).
var allVersions = []string{"3.22.1", "3.27.2", "3.52.0", "4.7.0"}

const usualVersion = "4.7.0"

func versions() []string {
	switch named := os.Getenv(versionsEnv); named {
	case "":
		return []string{usualVersion}
	case "all":
		return allVersions
	default:
		return strings.Split(named, ",")
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv)+os.Getenv(waiterEnv)+os.Getenv(turnsEnv) != "" {
		holdForEver()
	}
	if os.Getenv(loaderEnv) != "" {
		fmt.Fprintln(os.Stderr, executeLoads(os.Stdin, os.Stdout))
		os.Exit(1)
	}
	raiseParallelism()
	goleak.VerifyTestMain(m)
}

// raiseParallelism lets more tests run at a time than the machine has processors, because these tests mostly wait for leases.
// The command line can set another number.
func raiseParallelism() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "16") // every test binary has this flag
	}
}

// topology is a way to run Redis and to connect both sides to it.
type topology struct {
	name  string
	start func(t *testing.T) bed
}

// bed is a running topology.
type bed struct {
	config interop.Config                 // the configuration of Java
	client func() redis.UniversalClient   // the connection of Go
	master func(key string) *redis.Client // the server of the key, for direct commands
	subs   string                         // the subcommand of PUBSUB that counts the subscribers of a lock
	addr   string                         // address of a single server; otherwise empty
}

// The names of the topologies.
const (
	single   = "single"
	cluster  = "cluster"
	sentinel = "sentinel"
)

var topologies = []topology{
	{single, startSingle},
	{cluster, startCluster},
	{sentinel, startSentinel},
}

func startSingle(t *testing.T) bed {
	srv := redisserver.Start(t)
	raw := srv.Client()
	return bed{
		config: interop.Config{Mode: single, Addrs: []string{srv.Addr()}},
		client: func() redis.UniversalClient { return srv.Client() },
		master: func(string) *redis.Client { return raw },
		addr:   srv.Addr(),
		subs:   "numsub",
	}
}

// startCluster starts a Cluster with three masters. Redisson and package core both choose sharded messages there.
func startCluster(t *testing.T) bed {
	c := redisserver.StartCluster(t)
	raw := c.Client()
	return bed{
		config: interop.Config{Mode: cluster, Addrs: c.Addrs()},
		client: func() redis.UniversalClient { return c.Client() },
		master: func(key string) *redis.Client {
			node, err := raw.MasterForKey(t.Context(), key)
			if err != nil {
				t.Errorf("the master of %s: %v", key, err)
			}
			return node
		},
		subs: "shardnumsub",
	}
}

func startSentinel(t *testing.T) bed {
	s := redisserver.StartSentinel(t)
	raw := s.Client()
	return bed{
		config: interop.Config{Mode: sentinel, Addrs: []string{s.Sentinel.Addr()}, Master: redisserver.MasterName},
		client: func() redis.UniversalClient { return s.Client() },
		master: func(string) *redis.Client { return raw },
		subs:   "numsub",
	}
}

// site is a bed with both sides connected.
type site struct {
	bed

	topology  string
	version   string
	classPath string
	jvm       *interop.JVM
	java      *interop.Client       // with Redisson's defaults
	brief     *interop.Client       // with a watchdog of briefLease
	rdb       redis.UniversalClient // the Redis client of the clients of package core
}

// briefLease is short enough for tests that wait until it expires, and long enough to be renewed in time on a busy
// machine.
const briefLease = 2 * time.Second

func newSite(t *testing.T, version, classPath string, top topology) *site {
	t.Helper()
	s := &site{bed: top.start(t), topology: top.name, version: version, classPath: classPath}
	s.jvm = interop.StartJVM(t, s.classPath)
	if jar := s.jvm.Jar(t); jar != "redisson-"+version+".jar" {
		t.Fatalf("the program uses %s, want version %s", jar, version)
	}
	s.java = s.open(t, s.jvm, s.config)
	s.brief = s.open(t, s.jvm, s.briefConfig())
	s.rdb = s.client()
	return s
}

func (s *site) briefConfig() interop.Config {
	c := s.config
	c.Watchdog = briefLease
	return c
}

// locks creates a client of package core that is closed at the end of the test.
func (s *site) locks(t *testing.T, opts ...core.Option) *core.Client {
	t.Helper()
	return newLocks(t, s.rdb, opts...)
}

func newLocks(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 100*time.Millisecond)
		defer cancel()
		_ = locks.Close(ctx) // a failed test may leave held locks
	})
	return locks
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.Now().Add(30 * time.Second)
	for !condition() {
		if time.Now().After(limit) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // before the next poll, up to a limit
	}
}

// holderEnv and the following variables make this test binary a process that holds locks until it is killed.
const (
	holderEnv      = "INTERLOCK_INTEROP_HOLDER" // names, by kind, as "kind=name kind=name"
	waiterEnv      = "INTERLOCK_INTEROP_WAITER" // locks that it waits for
	turnsEnv       = "INTERLOCK_INTEROP_TURNS"  // a lock that it acquires and releases once for each line of input
	holderModeEnv  = "INTERLOCK_INTEROP_MODE"
	holderAddrsEnv = "INTERLOCK_INTEROP_ADDRS"
)

// holdForEver acquires the given locks, prints a line, and waits until it is killed or its input is
// closed.
func holdForEver() {
	o := &redis.UniversalOptions{Addrs: strings.Split(os.Getenv(holderAddrsEnv), ",")}
	if os.Getenv(holderModeEnv) == sentinel {
		o.MasterName = redisserver.MasterName
	}
	locks, err := core.New(redis.NewUniversalClient(o), core.WithWatchdog(briefLease))
	for word := range strings.FieldsSeq(os.Getenv(holderEnv)) {
		name, lock, _ := strings.Cut(word, "=")
		if err == nil {
			_, _, err = lockInChild(name)(locks, lock).Acquire(context.Background(), core.WaitTime(0))
		}
	}
	for word := range strings.FieldsSeq(os.Getenv(waiterEnv)) {
		name, lock, _ := strings.Cut(word, "=")
		go func() { _, _, _ = kindOf(name).lock(locks, lock).Acquire(context.Background()) }() // it ends with the process
	}
	fmt.Println(heldWord, err)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, lock, _ := strings.Cut(os.Getenv(turnsEnv), "=")
		go func() { // it ends with the process
			if _, hold, err := kindOf(name).lock(locks, lock).Acquire(context.Background()); err == nil {
				time.Sleep(turnTime) // the turn
				_ = hold.Release(context.Background())
			}
		}()
	}
	os.Exit(1)
}

// lockInChild returns the lock of a kind, the only permit of a semaphore, or the values "a" and "b" of a group.
func lockInChild(name string) func(locks *core.Client, name string) core.Lock {
	switch name {
	case "permit":
		return func(locks *core.Client, name string) core.Lock { return locks.Semaphore(name, 1).Lock }
	case "group":
		return groupOf("a", "b").lock
	default:
		return kindOf(name).lock
	}
}

// turnTime is the time for which a caller that takes turns holds the lock.
const turnTime = 3 * time.Millisecond

// heldWord begins the line that the process prints when it holds all locks.
const heldWord = "held:"
