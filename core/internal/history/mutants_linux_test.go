package history_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/history"
)

// mutant is the library with one mistake.
type mutant struct {
	name   string
	file   string // below core
	text   string // the code to replace, which occurs once
	by     string
	caught []string // rules; one of them finds the mistake
	seldom bool     // runs only with INTERLOCK_HISTORY_MUTANTS=all
	rare   bool     // the mistake rarely shows when processes die
	beside bool     // the mistake only shows beside Redisson, which is not in the bubble
}

var mutants = []mutant{
	{
		name: "deadline 150 ms late", file: "internal/lease/deadline.go",
		text:   "return sent.Add(ttl - margin(ttl))",
		by:     "return sent.Add(ttl - margin(ttl) + 150*time.Millisecond)",
		caught: []string{history.TwoHolders, history.LostUpdate, notLinearizable},
	},
	{
		name: "release frees any holder's lock", file: "internal/redisstore/lua/release.lua",
		text:   "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then",
		by:     "if redis.call('EXISTS', KEYS[1]) == 0 then",
		caught: []string{history.TwoHolders, history.LostUpdate, history.EarlyLoss, history.ReleaseLost, notLinearizable},
	},
	{
		seldom: true, name: "a run may outlive the lease", file: "internal/lease/term.go",
		text:   "if confirmed < least {",
		by:     "if least < 0 {",
		caught: []string{history.RunOverrun, history.TwoHolders, history.LostUpdate, history.NotInRedis, history.EarlyLoss, history.ReleaseLost, notLinearizable},
	},
	{
		seldom: true, name: "a run lowers no deadline", file: "internal/lease/term.go",
		text:   "wanted = DeadlineAfter(now, ttl).Sub(now)\n\t\tleast = wanted",
		by:     "least = DeadlineAfter(now, ttl).Sub(now)",
		caught: []string{history.Overrun},
	},
	{
		name: "two callers at once in one run", file: "internal/holding/release.go",
		text: "if o.in.Queues.CompletePass(next, o, now) {\n\t\t\treturn true, nil",
		by: "if o.in.Queues.CompletePass(next, o, now) {\n\t\t\tif second := o.takeNext(now); second != nil {\n" +
			"\t\t\t\to.in.Queues.CompletePass(second, o, now)\n\t\t\t}\n\t\t\treturn true, nil",
		caught: []string{history.TwoHolders, history.LostUpdate, notLinearizable},
	},
	{
		seldom: true, name: "the count of an earlier holder stays", file: "internal/holding/release.go",
		text:   "return false, o.releaseInner(ctx, left, span)",
		by:     "return false, nil",
		caught: []string{history.NotInRedis},
	},
	{
		seldom: true, name: "writer beside readers", file: "internal/redisstore/lua/rw_acquire_write.lua",
		text:   "local dead = mode == 'read' and longest(key, 1) == 0",
		by:     "local dead = mode == 'read'",
		caught: []string{history.TwoHolders, history.DirtyRead, history.NotInRedis, history.EarlyLoss, history.ReleaseLost, notLinearizable},
	},
	{
		seldom: true, name: "reader beside a writer", file: "internal/redisstore/lua/rw_acquire_read.lua",
		text:   "if mode ~= 'write' or ARGV[3] == '' or redis.call('HEXISTS', key, ARGV[3]) == 0 then",
		by:     "if mode ~= 'write' then",
		caught: []string{history.TwoHolders, history.DirtyRead, history.NotInRedis, notLinearizable},
	},
	{
		seldom: true, name: "one permit too many", file: "internal/redisstore/lua/permit_acquire.lua",
		text:   "if available > 0 then",
		by:     "if available >= 0 then",
		caught: []string{history.TooManyHolders, notLinearizable},
	},
	{
		seldom: true, rare: true, name: "permits of dead holders are lost", file: "internal/redisstore/lua/permit_total.lua",
		text:   "redis.call('INCRBY', key, over)",
		by:     "redis.call('INCRBY', key, 0)",
		caught: []string{history.LostPermit, history.BusyButFree, history.LostWakeup},
	},
	{
		seldom: true, name: "one token for all grants of a second", file: "internal/redisstore/lua/token.lua",
		text:   "local token = redis.pcall('INCR', KEYS[2])",
		by:     "local token = tonumber(redis.call('GET', KEYS[2]) or 0)\n  least = time[1] * 1000000",
		caught: []string{history.TokenOrder, notLinearizable},
	},
	{
		seldom: true, name: "the holder of a fair lock stays in its queue", file: "internal/redisstore/lua/fair_acquire.lua",
		text:   "if not pcall(remove, at, gone) then",
		by:     "if false then",
		caught: []string{history.Leftover, history.LostWakeup},
	},
	{
		seldom: true, name: "a hold has no limit", file: "internal/holding/limit.go",
		text:   "h.lose(failure.HeldTooLong)",
		by:     "_ = failure.HeldTooLong",
		caught: []string{history.HeldTooLong},
	},
	{
		seldom: true, name: "a value is granted before its lease ends", file: "internal/redisstore/lua/group_acquire.lua",
		text:   "if left > 0 then",
		by:     "if left > 1000 then",
		caught: []string{history.TwoHolders, history.LostUpdate, history.NotInRedis, history.EarlyLoss, history.ReleaseLost, notLinearizable},
	},
	{
		seldom: true, beside: true, name: "a holder of Redisson does not count", file: "internal/redisstore/lua/acquire.lua",
		text:   "if #holders == 0 then",
		by:     "if #holders == 0 or (tonumber(string.match(holders[1], ':(%d+)$')) or 0) < 1000000 then",
		caught: []string{history.TwoHolders, history.LostUpdate, history.NotInRedis, notLinearizable},
	},
	{
		seldom: true, name: "last come, first served", file: "internal/redisstore/lua/fair_acquire.lua",
		text:   "redis.call('RPUSH', at.queue, field)",
		by:     "redis.call('LPUSH', at.queue, field)",
		caught: []string{notLinearizable},
	},
}

// TestMutants builds the library with one mistake at a time and requires that a judged run finds the mistake.
// With INTERLOCK_HISTORY_MUTANTS=1 it builds and runs three mutants, which takes a minute. With
// INTERLOCK_HISTORY_MUTANTS=all it runs all of them, which takes four. Otherwise it only checks that the code
// to replace still exists.
func TestMutants(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := m.overlay(t)
			if which := os.Getenv(mutantsEnv); which != "all" && (which != "1" || m.seldom) {
				t.Logf("not built and run: %s is %q", mutantsEnv, which)
				return
			}
			binary := m.build(t, overlay)
			if !m.beside {
				m.run(t, binary, "TestHistory_Bubble", bubbleEnv+"=6m")
			}
			if !m.rare {
				m.run(t, binary, "TestHistory_Processes", durationEnv+"=12s")
			}
		})
	}
}

// overlay writes the file with the mistake, and the configuration that makes the go command use it.
func (m mutant) overlay(t *testing.T) (path string) {
	t.Helper()
	right, err := filepath.Abs(filepath.Join("..", "..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(right)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.text); n != 1 {
		t.Fatalf("%s contains %q %d times, want once: adapt the mutant to the new code", m.file, m.text, n)
	}
	dir := t.TempDir()
	wrong := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(source), m.text, m.by, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {right: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (m mutant) build(t *testing.T, overlay string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "mutant.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// mostRuns limits the runs of a mutant, each with another seed. On a slow machine a short run may end before
// the mistake shows.
const mostRuns = 8

// run runs one test of the mutant until the test finds the mistake.
func (m mutant) run(t *testing.T, binary, test, env string) {
	t.Helper()
	var out []byte
	for n := range mostRuns {
		cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^"+test+"$", "-test.v", "-test.timeout", "2m")
		cmd.Env = append(os.Environ(), env)
		var err error
		if out, err = cmd.CombinedOutput(); err == nil {
			continue
		}
		for _, rule := range m.caught {
			if at := strings.Index(string(out), ": "+rule+": "); at >= 0 {
				t.Logf("%s: caught by run %d%s", test, n+1, strings.SplitN(string(out[at:]), "\n", 2)[0])
				t.Logf("porcupine refuses this run: %t", strings.Contains(string(out), ": "+notLinearizable+": "))
				return
			}
		}
	}
	t.Errorf("%s breaks none of the rules %q in %d runs; output of the last run:\n%s", test, m.caught, mostRuns, out)
}
