package locktest

import (
	"context"
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// A Fault disturbs one command on its way to Redis or back.
type Fault struct {
	Name   string
	Inject func(*faultproxy.Proxy, faultproxy.Match) *faultproxy.Rule
}

// The faults of a command. A command that is held arrives when the rule is released or removed.
var (
	HoldRequest = Fault{"not executed", (*faultproxy.Proxy).HoldRequest}
	HoldReply   = Fault{"executed", (*faultproxy.Proxy).HoldReply}
	DropRequest = Fault{"request lost", (*faultproxy.Proxy).DropRequest}
	DropReply   = Fault{"reply lost", (*faultproxy.Proxy).DropReply}
)

// Refuse returns a fault that answers a command with an error. The command does not reach Redis.
func Refuse(says string) Fault {
	return Fault{"refused: " + says, func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.AnswerError(m, says) }}
}

// An Outage disturbs all connections to a server. Begin returns a function that ends it.
type Outage struct {
	Name  string
	Begin func(p *faultproxy.Proxy) (end func())
}

// The outages of a server or of the way to it.
var (
	Refused        = Outage{"refused", func(p *faultproxy.Proxy) func() { p.Refuse(true); return func() { p.Refuse(false) } }}
	Silent         = Outage{"black hole", func(p *faultproxy.Proxy) func() { p.BlackHole(true); return func() { p.BlackHole(false) } }}
	Cut            = Outage{"cut", func(p *faultproxy.Proxy) func() { p.Cut(); return func() {} }}
	TooManyClients = Outage{"too many clients", func(p *faultproxy.Proxy) func() {
		rule := p.AnswerError(faultproxy.Any(), "ERR max number of clients reached")
		p.Cut()
		return rule.Remove
	}}
)

// Slow returns an outage in which every reply takes d longer.
func Slow(d time.Duration) Outage {
	return Outage{"replies take " + d.String(), func(p *faultproxy.Proxy) func() { return p.DelayReply(faultproxy.Any(), d).Remove }}
}

// Passing returns replies with which Redis refuses a command temporarily. Redis sends none of them for a script that it
// executed.
func Passing() []string {
	return []string{"BUSY a script runs", "LOADING from disk", "TRYAGAIN a slot moves"}
}

// Refusals returns errors with which Redis refuses every command until the state of the server changes.
func Refusals() []string {
	return []string{
		"OOM command not allowed", "READONLY You can't write", "NOPERM no permissions", "LOADING Redis is loading",
		"BUSY a script runs", "MASTERDOWN Link with MASTER is down",
	}
}

// Scripts matches every execution of a script.
var Scripts = faultproxy.Command("evalsha", "eval")

// Script matches the execution of one script, for one key or several: "handoff" of the reentrant lock, "fair/acquire"
// of another kind.
func Script(t *testing.T, name string) faultproxy.Match {
	t.Helper()
	sources := ScriptSources(t)
	if sources[name] == "" {
		t.Fatalf("script %q does not exist", name)
	}
	one, several := digest(sources[name]), digest(sources[name+"_each"])
	return func(cmd []string) bool {
		return faultproxy.Command("EVALSHA")(cmd) && (cmd[1] == one || cmd[1] == several)
	}
}

// ScriptOn matches the execution of one script on a key.
func ScriptOn(t *testing.T, name, key string) faultproxy.Match {
	t.Helper()
	return faultproxy.All(Script(t, name), faultproxy.Containing(key))
}

func digest(source string) string {
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(source)) })
	return hex.EncodeToString(sum[:])
}

// ScriptSources returns the sources of all scripts by name. The scripts of the reentrant lock have no prefix.
func ScriptSources(t *testing.T) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	for i, kind := range redisstore.NewKinds().All() {
		for name, source := range kind.Sources() {
			if i > 0 {
				name = kind.Name + "/" + name
			}
			sources[name] = source
		}
	}
	return sources
}

// Land releases the command that a rule holds, and waits until Redis has executed it.
func Land(t *testing.T, rule *faultproxy.Rule) {
	t.Helper()
	held := rule.Hits()
	rule.Release()
	Eventually(t, "the held command to land", func() bool { return rule.Executed() >= held })
}

// Fewest runs a round five times and returns the fewest commands that a rule counted in one of them. If a machine is too
// slow to answer in time, a client sends commands again.
func Fewest(rule *faultproxy.Rule, round func()) int {
	fewest := math.MaxInt
	for range 5 {
		before := rule.Hits()
		round()
		fewest = min(fewest, rule.Hits()-before)
	}
	return fewest
}

// LandAll removes rules in a bubble and waits until Redis has executed the commands that they held.
func LandAll(rules []*faultproxy.Rule) {
	for _, r := range rules {
		r.Remove()
	}
	Pass(100 * time.Millisecond)
}

// Wobble delays every script by 0.1 to 0.4 ms on its way to Redis, at random.
func Wobble(proxy *faultproxy.Proxy, seed uint64) {
	const grades = 4
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range grades {
		some := func([]string) bool {
			mu.Lock()
			defer mu.Unlock()
			return r.IntN(grades-i) == 0
		}
		proxy.DelayRequest(faultproxy.All(Scripts, some), time.Duration(i+1)*100*time.Microsecond)
	}
}

// LeaveGhost leaves a ghost in a bubble: the acquire of a caller that has given up lands in Redis.
func LeaveGhost(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy, key string) {
	t.Helper()
	acquire := proxy.HoldRequest(faultproxy.Once(ScriptOn(t, "acquire", key)))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, _, err := locks.Lock(key).Acquire(ctx, core.LeaseTime(time.Minute))
	WantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
	acquire.Release()
	Pass(0)
	if acquire.Executed() != 1 {
		t.Fatal("the acquire has not landed")
	}
}

// KeepGhosts keeps the client from clearing up the ghosts of a key until the rule is removed.
func KeepGhosts(t *testing.T, proxy *faultproxy.Proxy, key string) *faultproxy.Rule {
	t.Helper()
	return proxy.AnswerError(ScriptOn(t, "clear", key), "NOPERM not now")
}

// ScriptHook is a hook of go-redis around scripts.
type ScriptHook struct {
	Around func(ctx context.Context, next func() error) error
}

// DialHook implements redis.Hook.
func (*ScriptHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *ScriptHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !IsScript(cmd) {
			return next(ctx, cmd)
		}
		return h.Around(ctx, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h *ScriptHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !IsScript(cmds[0]) {
			return next(ctx, cmds)
		}
		return h.Around(ctx, func() error { return next(ctx, cmds) })
	}
}

// IsScript reports whether a command executes a script.
func IsScript(cmd redis.Cmder) bool { return strings.HasPrefix(cmd.Name(), "eval") }
