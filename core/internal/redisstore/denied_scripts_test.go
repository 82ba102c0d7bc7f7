package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// If Redis denies a script one of its commands, the script has done nothing and answers with an error, or it has done
// all and answers as always.
func TestScripts_DeniedCommand(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, server redisserver.Binary) {
		var mu sync.Mutex
		used := make(map[string]bool)
		t.Run("denied", func(t *testing.T) {
			for _, kind := range kinds.All() {
				t.Run(kind.Name, func(t *testing.T) {
					t.Parallel()
					d := &denials{bench: newBench(t, server.Start(t).Client()), kind: kind, users: make(map[string]*bench)}
					here := d.deny()
					mu.Lock()
					defer mu.Unlock()
					maps.Copy(used, here)
				})
			}
		})
		if len(used) == 0 { // without a server, every kind is skipped
			return
		}
		for _, kind := range kinds.All() {
			for script, source := range kind.Sources() {
				for _, found := range literal.FindAllStringSubmatch(source, -1) {
					if name := strings.ToLower(found[1]); !used[name] {
						t.Errorf("no call has used %s, which is in the script %s of a %s: add a state", name, script, kind.Noun())
					}
				}
			}
		}
	})
}

// denials runs all scripts of a kind on one server, and denies each script each of its commands in turn.
type denials struct {
	*bench

	kind  *redisstore.Kind
	users map[string]*bench // by the command that is denied; "" for none
}

// The holders of a kind. java is a holder of Redisson.
const (
	mine, theirs, next, ghost, java = 'a', 'b', 'c', 'd', 'e'
	second                          = "second:" + key
)

// field returns a field of a holder.
func (d *denials) field(who rune) string {
	switch id := strings.Repeat(string(who), 8); {
	case d.kind.Holds == redisstore.Drawn:
		return strings.Repeat(id, 4)
	case d.kind.Waits == redisstore.Abreast:
		return id + ":down:1"
	case d.kind.Holds == redisstore.Unheld:
		return id + ":take:2"
	case who == java:
		return id + alice[8:] + d.kind.Suffix
	default:
		return id + alice[8:len(alice)-1] + "2199023255553" + d.kind.Suffix
	}
}

// keys returns two keys of the kind.
func (d *denials) keys() []string {
	if d.kind.HasMembers() {
		return []string{keyX, keyY}
	}
	return []string{key, second}
}

func (d *denials) claim(at int, who rune) redisstore.Claim {
	return redisstore.Claim{Kind: d.kind, Key: d.keys()[at], Field: d.field(who)}
}

// terms returns the terms of an attempt: with few wishes, and with all.
func (d *denials) terms() []redisstore.Terms {
	tokens := d.kind.Holds == redisstore.Reentrant && !d.kind.HasMembers() && d.kind != kinds.Read
	return []redisstore.Terms{
		{Lease: 2 * time.Minute, Demand: "0"},
		{
			Lease: 2 * time.Minute, Demand: "3", Token: tokens, Wait: time.Hour, Under: d.field(mine) + kinds.Write.Suffix,
			Forget: []string{"~" + d.field(theirs)}, Ghosts: []string{d.field(ghost)},
		},
	}
}

// run is one call of a script.
type run struct {
	script string // the name in Kind.Sources
	name   string
	call   func(b *bench) (any, error)
}

func callOf[T any](script, name string, call func(b *bench) redisstore.Call[T]) run {
	return run{script, name, func(b *bench) (any, error) {
		c := call(b)
		v, fate, err := c.Wait(context.Background(), soon())
		if fate != wire.Answered {
			return nil, fmt.Errorf("no answer: %w", err)
		}
		if findings, is := any(v).([]redisstore.Finding); is && err == nil {
			for _, f := range findings {
				err = errors.Join(err, f.Err)
			}
		}
		return v, err
	}}
}

// runs returns calls of each script of the kind.
func (d *denials) runs() (all []run) {
	now, k, one, both := time.Now(), d.kind, d.claim(0, mine), d.keys()
	for i, terms := range d.terms() {
		all = append(all, callOf("acquire", strconv.Itoa(i), func(b *bench) redisstore.Call[redisstore.Grant] { return b.Acquire(now, one, terms) }))
		all = append(all, callOf("handoff", strconv.Itoa(i), func(b *bench) redisstore.Call[redisstore.Change] { return b.HandOff(now, one, d.field(next), terms) }))
	}
	all = append(all,
		callOf("acquire_all", "", func(b *bench) redisstore.Call[redisstore.Grant] {
			return b.AcquireAll(now, k, both, one.Field, 2*time.Minute)
		}),
		callOf("release", "", func(b *bench) redisstore.Call[redisstore.Released] { return b.Release(now, one) }),
		callOf("force", "", func(b *bench) redisstore.Call[bool] { return b.Force(now, k, one.Key) }),
		callOf("state", "", func(b *bench) redisstore.Call[redisstore.Snapshot] { return b.State(now, k, one.Key) }),
		callOf("count", "", func(b *bench) redisstore.Call[redisstore.Counts] { return b.Count(now, k, one.Key) }),
	)
	for name, lease := range map[string]time.Duration{"same": 0, "longer": 2 * time.Hour, "shorter": 30 * time.Second} {
		all = append(all,
			callOf("sethold", name, func(b *bench) redisstore.Call[bool] { return b.Hold(now, one, 2, lease) }),
			callOf("sethold", name+" once", func(b *bench) redisstore.Call[bool] { return b.Hold(now, one, 1, lease) }),
		)
		if lease > 0 {
			all = append(all, callOf("refresh", name, func(b *bench) redisstore.Call[redisstore.Change] { return b.Refresh(now, one, lease) }),
				callOf("handoff", name, func(b *bench) redisstore.Call[redisstore.Change] {
					return b.HandOff(now, one, d.field(next), redisstore.Terms{Lease: lease})
				}))
		}
		for script, claims := range map[string][]redisstore.Claim{"renew": {one}, "renew_each": {one, d.claim(1, mine)}} {
			all = append(all, run{script, name, func(b *bench) (any, error) {
				verdicts := b.Renew(context.Background(), claims, lease)
				var err error
				for _, v := range verdicts {
					err = errors.Join(err, v.Err)
				}
				return verdicts, err
			}})
		}
	}
	all = append(all, callOf("evict", "", func(b *bench) redisstore.Call[redisstore.Evicted] {
		found := reply(d.bench, d.Inspect(now, one.Key))
		if _, evicts := d.Evicts(&found); !evicts {
			found.What = "fenced"
		}
		k, _ := d.Evicts(&found)
		return b.Evict(now, k, &found, []string{one.Field})
	}))
	for _, ops := range d.suspected() {
		one := redisstore.Suspicion{Kind: k, Key: both[0], Fields: ops}
		clears := func(list ...redisstore.Suspicion) func(b *bench) redisstore.Call[[]redisstore.Finding] {
			return func(b *bench) redisstore.Call[[]redisstore.Finding] { return b.Clear(now, list) }
		}
		all = append(all, callOf("clear", strings.Join(ops, " "), clears(one)),
			callOf("clear_each", strings.Join(ops, " "), clears(one, redisstore.Suspicion{Kind: k, Key: both[1], Fields: ops})))
	}
	return all
}

// suspected returns the fields of the calls of clear.
func (d *denials) suspected() [][]string {
	id := strings.Repeat("f", 32)
	switch d.kind {
	case kinds.PermitSemaphore:
		return [][]string{
			{d.field(mine), d.field(ghost)}, {id + ":set:3"}, {id + ":add:2"}, {id + ":add:2147483647"}, {id + ":total:5"}, {id + ":" + d.field(mine) + ":back:1"},
		}
	case kinds.PlainSemaphore:
		return [][]string{{d.field(mine), "~" + d.field(theirs)}, {id + ":set:3"}, {id + ":give:2"}, {id + ":give:2147483647"}}
	case kinds.Latch:
		return [][]string{{id + ":begin:3"}, {d.field(mine)}}
	default:
		return [][]string{{d.field(mine), d.field(ghost)}}
	}
}

// state is the content of Redis before a call.
type state struct {
	name string
	set  func()
}

// take lets a holder have the lock at one of the keys.
func (d *denials) take(at int, who rune, terms redisstore.Terms) {
	d.t.Helper()
	if terms.Lease == 0 {
		terms.Lease = time.Minute
	}
	if terms.Demand == "" {
		terms.Demand = "2"
	}
	reply(d.bench, d.Acquire(time.Now(), d.claim(at, who), terms))
}

func (d *denials) do(args ...any) {
	d.t.Helper()
	must(d.t, d.rdb.Do(d.t.Context(), args...).Err())
}

// states returns the states of the locks of the kind.
func (d *denials) states() []state {
	holds := func(who ...rune) func() {
		return func() {
			if d.kind.Counts() {
				d.do("set", key, 5)
			}
			for _, w := range who {
				d.take(0, w, redisstore.Terms{})
			}
		}
	}
	all := []state{
		{"free", func() {}},
		{"mine", holds(mine)},
		{"mine, and the other key", func() { holds(mine)(); d.take(1, mine, redisstore.Terms{}) }},
		{"theirs", holds(theirs)},
		{"of the next one", holds(next)},
		{"of a ghost", holds(ghost)},
		{"mine and theirs", holds(mine, theirs)},
	}
	if d.kind.Holds == redisstore.Reentrant {
		all = append(all, state{"mine twice", func() {
			holds(mine)()
			reply(d.bench, d.Hold(time.Now(), d.claim(0, mine), 2, time.Minute))
		}})
	}
	switch d.kind {
	case kinds.Read, kinds.Write:
		return append(all, d.readWriteStates()...)
	case kinds.Fair:
		return append(all, d.fairStates()...)
	case kinds.PermitSemaphore:
		return append(all,
			state{"expired", func() {
				holds(mine, theirs)()
				d.do("zadd", leasesKey, 1, "expired")
			}},
			state{"expires", func() { d.do("set", key, 3, "px", 3600000) }},
			state{"no permit left", func() { holds(theirs, ghost)(); d.do("set", key, 0) }},
			state{"count expired", func() { holds(mine, theirs, ghost)(); d.do("del", key) }},
			state{"count expired, lease expired", func() {
				holds(mine)()
				d.do("del", key)
				d.do("zadd", leasesKey, 1, "expired")
			}},
			state{"count and leases expire", func() {
				holds(mine)()
				d.do("pexpire", key, 3600000)
				d.do("pexpire", leasesKey, 3600000)
			}},
		)
	case kinds.PlainSemaphore:
		return append(all,
			state{"few", func() { d.do("set", key, 1) }},
			state{"executed before the count fell", func() { holds(mine)(); d.do("set", key, 0) }},
			state{"about to be forgotten", func() { holds(mine)(); d.do("pexpire", operationsKey, 60000) }},
		)
	case kinds.Latch:
		return append(all, state{"last", func() { d.do("set", key, 1) }})
	case kinds.Group:
		return append(all, state{"ended", func() {
			holds(theirs)()
			d.do("hset", key, fieldX+":"+d.field(theirs)+":expire_time", 1)
		}}, state{"both mine", func() { d.take(0, mine, redisstore.Terms{}); d.take(1, mine, redisstore.Terms{}) }})
	default:
		return all
	}
}

func (d *denials) readWriteStates() []state {
	field := func(who rune) string { return strings.TrimSuffix(d.field(who), kinds.Write.Suffix) }
	write := func(who rune, lease time.Duration) {
		d.gets(writing(field(who)+kinds.Write.Suffix), redisstore.Terms{Lease: lease})
	}
	read := func(who rune, lease time.Duration) {
		d.gets(reading(field(who)), redisstore.Terms{Lease: lease, Under: field(mine) + kinds.Write.Suffix})
	}
	return []state{
		{"writes", func() { write(mine, time.Minute) }},
		{"reads", func() { read(mine, time.Minute) }},
		{"theirs reads longer", func() { read(mine, time.Minute); read(theirs, time.Hour) }},
		{"theirs reads shorter", func() { read(mine, time.Hour); read(theirs, time.Minute) }},
		{"writes and reads longer", func() { write(mine, time.Minute); read(mine, time.Hour) }},
		{"writes and reads shorter", func() { write(mine, time.Hour); read(mine, time.Minute) }},
		{"writes and theirs reads longer", func() { write(mine, time.Minute); read(theirs, time.Hour) }},
		{"writer ended", func() { write(mine, time.Minute); read(mine, time.Hour); d.runsOut() }},
		{"writer ended, theirs", func() { write(mine, time.Minute); read(theirs, time.Hour); d.runsOut() }},
		{"dead reader", func() { read(theirs, time.Minute); d.dies(field(theirs)) }},
		{"dead reader beside mine", func() { read(mine, time.Minute); read(theirs, time.Hour); d.dies(field(theirs)) }},
		{"waiting writer", func() { read(theirs, time.Minute); d.do("set", mark, "1 "+field(next)+":write", "px", 3600000) }},
	}
}

func (d *denials) fairStates() []state {
	queued := func(who rune, ends int) {
		at := time.Now().Add(time.Duration(ends) * time.Second).UnixMilli()
		d.do("rpush", redisstore.FairQueue(key), d.field(who))
		d.do("zadd", redisstore.FairTimeouts(key), at, d.field(who))
		note := "1000000000000 " // long ago
		if who == java {
			note += strconv.FormatInt(at, 10)
		}
		d.do("hset", seen, d.field(who), note+" again")
		for _, name := range []string{redisstore.FairQueue(key), redisstore.FairTimeouts(key), seen} {
			d.do("pexpire", name, 299000)
		}
	}
	return []state{
		{"my turn", func() { queued(mine, 300); queued(theirs, 600) }},
		{"the turn of my ghost", func() { queued(ghost, 300); queued(theirs, 600) }},
		{"my ghost behind me", func() { queued(mine, 300); queued(theirs, 600); queued(ghost, 900) }},
		{"dead heads", func() { queued(theirs, 300); queued(java, 600); queued(mine, 900); queued(next, 1200) }},
		{"late heads", func() { queued(theirs, -300); queued(java, -100) }},
		{"held, my place", func() { d.take(0, next, redisstore.Terms{}); queued(theirs, 300); queued(mine, 310) }},
		{"held, waiters", func() {
			d.take(0, mine, redisstore.Terms{})
			queued(theirs, 300)
			queued(ghost, 600)
			queued(java, 900)
		}},
		{"held, java waits", func() { d.take(0, theirs, redisstore.Terms{}); queued(java, 300) }},
	}
}

// seen is the hash of the times at which the waiters of a fair lock were seen.
const seen = "{" + key + "}:interlock_seen"

// content is a script that returns the whole content of Redis.
const content = `
local all, time = {}, redis.call('TIME')
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, nil
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else value = {redis.call('GET', key)} end
  all[#all + 1] = {key, kind, redis.call('PTTL', key), value}
end
return {time[1], all}`

const roundness = 10 * time.Second

var instant = regexp.MustCompile(`\b1\d{12}(\d{3})?\b`)

// round replaces the times of the server in a text, which differ from run to run, by their distances from now.
func round(text string, now time.Time) string {
	return instant.ReplaceAllStringFunc(text, func(digits string) string {
		ms, _ := strconv.ParseInt(digits[:13], 10, 64)
		if left := time.UnixMilli(ms).Sub(now); left.Abs() < 1000*time.Hour {
			return "now+" + left.Round(roundness).String()
		}
		return digits
	})
}

// contents returns the whole content of Redis, with the TTLs. It omits the mark of a waiting writer, which lasts for less than a second.
func (d *denials) contents() map[string]string {
	d.t.Helper()
	got, err := d.rdb.Eval(context.Background(), content, nil).Slice()
	must(d.t, err)
	secs, _ := strconv.ParseInt(got[0].(string), 10, 64)
	all := make(map[string]string)
	for _, each := range got[1].([]any) {
		k := each.([]any)
		name, kind := k[0].(string), k[1].(string)
		ttl := time.Duration(k[2].(int64)) * time.Millisecond //nolint:durationcheck // a number of ms
		var values []string
		for _, v := range k[3].([]any) {
			values = append(values, round(fmt.Sprintf("%q", v), time.Unix(secs, 0)))
		}
		if kind == "hash" {
			var pairs []string
			for pair := range slices.Chunk(values, 2) {
				pairs = append(pairs, strings.Join(pair, "="))
			}
			values = pairs
			slices.Sort(values)
		}
		if name == seen && ttl > 0 {
			continue // hints, which expire
		}
		if (name == operationsKey || kind == "list" || name == redisstore.FairTimeouts(key)) && ttl > 0 {
			ttl = time.Minute // whatever it is
		}
		if name == mark && ttl > 0 || strings.HasPrefix(name, "redisson_lock_token:") && ttl < 0 {
			continue
		}
		life := "none"
		if ttl >= 0 {
			life = ttl.Round(roundness).String()
		}
		all[name] = strings.Join(values, " ") + ", ttl " + life
	}
	for name := range all { // a timeout key means nothing without the hold of its reader, and it expires
		rest, n, is := strings.Cut(name, ":rwlock_timeout:")
		field := strings.TrimPrefix(rest, "{"+key+"}:")
		count := regexp.MustCompile(regexp.QuoteMeta(strconv.Quote(field)) + `="(\d+)"`).FindStringSubmatch(all[key])
		if is && !strings.Contains(all[name], "ttl none") && (count == nil && !strings.Contains(field, second) || count != nil && count[1] < n) {
			delete(all, name)
		}
	}
	return all
}

var (
	jsonTTL   = regexp.MustCompile(`"TTL":(-?\d+)`)
	jsonToken = regexp.MustCompile(`"Token":\d{16}`)
)

// textOf returns an answer without the times that differ from run to run.
func textOf(answer any) string {
	text, _ := json.Marshal(answer) //nolint:errchkjson // the answers contain no values that JSON does not have
	out := jsonTTL.ReplaceAllStringFunc(string(text), func(ttl string) string {
		n, _ := strconv.ParseInt(ttl[len(`"TTL":`):], 10, 64)
		return `"TTL":` + time.Duration(n).Round(roundness).String()
	})
	return jsonToken.ReplaceAllString(out, `"Token":new`)
}

var literal = regexp.MustCompile(`redis\.p?call\('(\w+)'`)

// used returns the commands that the server has executed since CONFIG RESETSTAT.
func (d *denials) used() map[string]bool {
	stats := d.rdb.Info(d.t.Context(), "commandstats").Val()
	all := make(map[string]bool)
	for line := range strings.Lines(stats) {
		if name, is := strings.CutPrefix(line, "cmdstat_"); is {
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, "|") // the subcommand
			all[name] = true
		}
	}
	for _, not := range []string{"evalsha", "eval", "config", "info", "acl", "auth", "hello", "client", "ping", "script"} {
		delete(all, not)
	}
	return all
}

// as returns a store whose user lacks the right to a command.
func (d *denials) as(command string) *bench {
	if d.users[command] == nil {
		user := "no" + command
		rules := []any{"acl", "setuser", user, "on", "nopass", "~*", "&*", "+@all"}
		if command != "" {
			rules = append(rules, "-"+command)
		}
		d.do(rules...)
		d.users[command] = newBench(d.t, d.clientOf(user))
	}
	return d.users[command]
}

// result is what a call left and what it returned to its caller.
type result struct {
	keys   map[string]string
	answer string
	err    error
	used   map[string]bool
}

// upkeep returns sequences of what a script may do before its own work, each complete in itself: it ends what has
// expired, and clears what an earlier attempt of its caller left.
func (d *denials) upkeep() [][]func() {
	clears := func(fields ...string) func() {
		return func() {
			reply(d.bench, d.Clear(time.Now(), []redisstore.Suspicion{{Kind: d.kind, Key: d.keys()[0], Fields: fields}}))
		}
	}
	ended, ghosts := clears("nobody"), clears(d.field(ghost))
	switch d.kind {
	case kinds.PermitSemaphore:
		const life = 25*60*60*1000 + 2*60*1000 // in ms
		raise := func(name string) {
			if d.rdb.PTTL(d.t.Context(), name).Val() > 0 {
				d.do("pexpire", name, life)
			}
		}
		count := func() { reply(d.bench, d.Count(time.Now(), d.kind, key)) }
		set := func() { // an acquire sets the number of permits
			isNew := d.rdb.Exists(d.t.Context(), key).Val() == 0
			d.do("set", key, 3-d.rdb.ZCard(d.t.Context(), leasesKey).Val(), "keepttl")
			if isNew {
				d.do("pexpire", key, life)
			}
		}
		return [][]func(){{ghosts, count}, {func() { raise(key); raise(leasesKey) }, ghosts, count, set}}
	case kinds.PlainSemaphore:
		forget := clears("~" + d.field(theirs))
		return [][]func(){{ghosts, forget}, {forget}}
	case kinds.Fair: // those whose time has ended leave the queue
		stays := func() { // the caller keeps its place for longer
			queue, deadlines := redisstore.FairQueue(key), redisstore.FairTimeouts(key)
			if at := slices.Index(d.rdb.LRange(d.t.Context(), queue, 0, -1).Val(), d.field(mine)); at >= 0 {
				d.do("zadd", deadlines, "xx", "gt", time.Now().Add(time.Duration(at+1)*5*time.Minute).UnixMilli(), d.field(mine))
			}
		}
		return [][]func(){{ghosts, clears(d.field(theirs), d.field(java))}, {stays}}
	case kinds.Write:
		return [][]func(){{ended, func() { // a lock whose readers are all dead is free
			if len(reply(d.bench, d.State(time.Now(), d.kind, key)).Holders) == 0 {
				d.do("del", key)
			}
		}}}
	default:
		return [][]func(){{ended}}
	}
}

// unchanged returns the contents of Redis that count as unchanged.
func (d *denials) unchanged(s state) (all []map[string]string) {
	for _, steps := range append(d.upkeep(), nil) {
		d.do("flushall")
		s.set()
		all = append(all, d.contents())
		for _, step := range steps {
			step()
			all = append(all, d.contents())
		}
	}
	if d.kind != kinds.Fair {
		return all
	}
	moved := maps.Clone(all[0]) // the place of a ghost goes to its caller
	for name, value := range moved {
		if name != key {
			moved[name] = strings.ReplaceAll(value, d.field(ghost), d.field(mine))
		}
	}
	return append(all, moved)
}

// try makes a call in a state, as a user without the right to a command, and returns what Redis contained before.
func (d *denials) try(s state, r run, denied string) (before map[string]string, after result) {
	user := d.as(denied)
	d.do("flushall")
	s.set()
	before = d.contents()
	d.do("config", "resetstat")
	answer, err := r.call(user)
	after = result{answer: textOf(answer), err: err, used: d.used()}
	for range 2 { // executed twice
		after.keys = d.contents()
		if err == nil {
			break
		}
		_, err = r.call(user)
	}
	return before, after
}

// late matches what shows whether a TTL was lowered.
var late = regexp.MustCompile(`, ttl (\S+)$| "interlock_until"="@\S+"|"(Fell|Kept)":\w+`)

// lasts reports whether a result differs from another one only because TTLs were not lowered.
func (r result) lasts(before map[string]string, done result) bool {
	for name, content := range r.keys {
		got, want := lifeOf(content), lifeOf(done.keys[name])
		if got != want && (got < want || got != lifeOf(before[name])) {
			return false
		}
	}
	return late.ReplaceAllString(r.answer, "") == late.ReplaceAllString(done.answer, "") &&
		maps.EqualFunc(r.keys, done.keys, func(a, b string) bool { return late.ReplaceAllString(a, "") == late.ReplaceAllString(b, "") })
}

// lifeOf returns the TTL at the end of a content.
func lifeOf(content string) time.Duration {
	_, ttl, _ := strings.Cut(content, ", ttl ")
	d, err := time.ParseDuration(ttl)
	if err != nil {
		return math.MaxInt64
	}
	return d
}

// advisory lists the commands whose denial changes an answer but no promise.
var advisory = map[string]bool{
	"acquire get":  true, // of a reader: it does not see that a writer waits
	"state exists": true, // a dead reader counts as alive
	"evict llen":   true, // here and below: what cannot be read counts as absent
	"evict strlen": true, "evict zrangebyscore": true,
}

// deny runs each script in each state, and then once more for each command that it used, without the right to that
// command. It returns the commands that were used.
func (d *denials) deny() (used map[string]bool) {
	used = make(map[string]bool)
	for _, r := range d.runs() {
		if d.kind.Sources()[r.script] == "" && r.script != "evict" {
			continue
		}
		for _, s := range d.states() {
			if r.script == "handoff" && s.name == "mine twice" {
				continue // only the last hold of a holder is handed off
			}
			unchanged := d.unchanged(s)
			before, done := d.try(s, r, "")
			maps.Copy(used, done.used)
			if d.kind == kinds.Fair && r.script == "clear" { // the lock and the queue are cleared separately
				freed, left := maps.Clone(before), maps.Clone(done.keys)
				if left[key] = before[key]; left[key] == "" {
					delete(left, key)
				}
				delete(freed, key)
				unchanged = append(unchanged, freed, left)
			}
			for command := range done.used {
				_, got := d.try(s, r, command)
				maps.Copy(used, got.used)
				switch {
				case wire.Rejects(got.err) && slices.ContainsFunc(unchanged, func(b map[string]string) bool { return maps.Equal(b, got.keys) }):
				case got.err == nil && maps.Equal(got.keys, done.keys) && got.answer == done.answer, got.err == nil && got.lasts(before, done):
				case got.err == nil && advisory[r.script+" "+command]:
				default:
					d.t.Errorf("%s %s of a %s, without %s, of a lock that is %q: %s, %v\n   before %v\n   done   %v\n   got    %v",
						r.script, r.name, d.kind.Noun(), command, s.name, got.answer, got.err, before, done.keys, got.keys)
				}
			}
		}
	}
	return used
}
