package grpclock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// ruleFile is a rule file that is loaded again on request.
type ruleFile struct {
	*ruleset.Live
	path string
}

// openRules writes a rule file and opens it.
func openRules(t testing.TB, text string) *ruleFile {
	t.Helper()
	f := &ruleFile{path: filepath.Join(t.TempDir(), "locks.yaml")}
	f.write(t, text)
	var err error
	if f.Live, err = ruleset.Open(f.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *ruleFile) write(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// change writes another rule file and loads it.
func (f *ruleFile) change(t testing.TB, text string) error {
	t.Helper()
	f.write(t, text)
	return f.Reload()
}

// tillFile returns a rule file with one entry for the service.
func tillFile(method, fields string) string {
	return "rules:\n  - {grpc: " + tillMethod(method) + ", " + fields + "}\n"
}

func TestReload_RefusesInvalidFiles(t *testing.T) {
	t.Parallel()
	const good = `on_busy: skip`
	for name, tt := range map[string]struct{ text, want string }{
		"field of the message": {tillFile("Skip", `key: "till:#{req.itm}"`), "write req.item"},
		"condition":            {tillFile("Skip", `when: req.amont > 1`), "write req.amount"},
		"fallback":             {tillFile("Skip", `on_busy: fallback, fallback: qeue`), `write "queue"`},
		"response":             {tillFile("Skip", `on_busy: null_response, response: '{"txt": "a"}'`), "unknown field"},
		"unknown method":       {tillFile("Skp", `key: k`), `did you mean "/till.v1.Till/Skip"?`},
		"uncovered":            {"uncovered: error\n" + tillFile("Skip", good), "rule of grpc /till.v1.Till/Plain: missing, and"},
		"name of no option":    {tillFile("Both", `name: itm, wait_time: 1s`), `give its name: "day" or "item"`},
		"another lock":         {tillFile("Refuse", `key: "new:#{req.item}"`), "allow_rekey"},
		"another prefix":       {tillFile("Refuse", `prefix: "new:"`), "allow_rekey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			rules := openRules(t, tillFile("Refuse", good))
			b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules), core.WithObserver(seen.observer())).checkAndServe()
			b.redis.Take("till:1", time.Minute)
			err := rules.change(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || (name != "uncovered" && !strings.Contains(err.Error(), "locks.yaml:2:")) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | skipped | (empty)" {
				t.Errorf("after the refusal: got %q, want the old rule", got)
			}
			if err := rules.change(t, tillFile("Refuse", `on_busy: proceed`)); err != nil {
				t.Errorf("a good file after a bad one: %v", err)
			}
			if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | unlocked | Refuse 1" {
				t.Errorf("after the next reload: got %q", got)
			}
		})
	}
}

// If the key of a method moves between the rule file and the .proto file, the change of the key is noticed.
func TestReload_ComparesAllLayers(t *testing.T) {
	t.Parallel()
	rules := openRules(t, tillFile("Refuse", `keys: ["till:#{req.item}", "new:#{req.item}"]`))
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules)).checkAndServe()
	if err := rules.change(t, tillFile("Refuse", `key: "new:#{req.item}"`)); err != nil {
		t.Errorf("a step with both keys: %v", err)
	}
	if err := rules.change(t, elsewhere); err == nil {
		t.Error("back to the key of the .proto: not refused")
	}
	if err := rules.change(t, "allow_rekey: true\n"+elsewhere); err != nil {
		t.Errorf("back to the key of the .proto, allowed: %v", err)
	}
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != busy {
		t.Errorf("got %q, want the rule of the .proto", got)
	}
}

func TestReload_AllGuardsOrNone(t *testing.T) {
	t.Parallel()
	rules := openRules(t, tillFile("Plain", `key: "till:#{req.item}", wait_time: none`))
	tenant := grpclock.WithVariable("tenant", func(context.Context) (string, error) { return "x", nil })
	first := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules), tenant).checkAndServe()
	second := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules)).checkAndServe()
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.item}", when: tenant == "y"`)); err == nil {
		t.Fatal("a rule that does not fit one guard was not refused")
	}
	for i, b := range []*bench{first, second} {
		b.redis.Take("till:1", time.Minute)
		if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != busy {
			t.Errorf("guard %d: got %q, want the old rule", i+1, got)
		}
	}
}

// ruleLog collects the rules that a guard reports to observers.
type ruleLog struct {
	mu   sync.Mutex
	list []string
}

func (o *ruleLog) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: o.observeRule}}
}

func (o *ruleLog) observeRule(r aspect.RuleInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := r.Endpoint.Path + " " + r.Rule
	if r.Retracted {
		text = "gone: " + text
	}
	o.list = append(o.list, text)
}

func (o *ruleLog) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

func TestReload_NotifiesObservers(t *testing.T) {
	t.Parallel()
	files, service := readLate(t, lateService(t, payLock, ""), nil)
	rules := openRules(t, "rules:\n  - {grpc: /late.v1.Orders/Chat, name: chat, key: k}\n")
	seen, warned := &ruleLog{}, &warnings{}
	b := prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithSet(rules), core.WithObserver(seen.observer(), warned.observer()))
	b.server = dynamicServer(b.guard, service)
	b.checkAndServe()
	expect := func(when string, want ...string) {
		t.Helper()
		if got := seen.take(); !slices.Equal(got, want) {
			t.Errorf("%s: observers got %q, want %q", when, got, want)
		}
	}
	expect("at the start", "/late.v1.Orders/Chat chat", "/late.v1.Orders/Pay /late.v1.Orders/Pay")

	if err := rules.change(t, "rules:\n  - {grpc: /late.v1.Orders/Chat, name: chat, key: 'k#{req.x}'}\n"); err == nil {
		t.Error("not refused")
	}
	expect("after a refused file")

	if err := rules.change(t, "unmatched: warn\nuncovered: warn\nrules:\n  - {grpc: /late.v1.Orders/Pya, key: k}\n"); err != nil {
		t.Fatal(err)
	}
	expect("after a reload", "gone: /late.v1.Orders/Chat chat", "/late.v1.Orders/Pay /late.v1.Orders/Pay")
	if got := warned.text(); !strings.Contains(got, `did you mean "/late.v1.Orders/Pay"?`) || !strings.Contains(got, "/late.v1.Orders/Chat: missing, and") {
		t.Errorf("got the warnings %q", got)
	}
}

// Without Check, a reload compiles the methods that were called before.
func TestReload_WithoutCheckCompilesCalledMethods(t *testing.T) {
	t.Parallel()
	rules := openRules(t, elsewhere)
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules))
	b.serve()
	if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != "OK | Plain 1" {
		t.Error(got)
	}
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.itm}"`)); err == nil || !strings.Contains(err.Error(), "write req.item") {
		t.Errorf("a broken rule of a method that was called: %v", err)
	}
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.item}", wait_time: none`)); err != nil {
		t.Error(err)
	}
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != busy {
		t.Errorf("got %q, want the new rule", got)
	}
}

// attempts collects the reloads of a watched file.
type attempts chan ruleset.Reload

// await waits for the attempt to load a rule file.
func (a attempts) await(t testing.TB, text string) error {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:12]
	limit := time.After(5 * time.Minute) // reached only by a failing test
	for {
		select {
		case r := <-a:
			if r.Hash == hash {
				return r.Err
			}
		case <-limit:
			t.Fatalf("the file was not loaded:\n%s", text)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const versions = 4

// twoLocks returns a rule file whose two rules have the version in their keys.
func twoLocks(version int) string {
	const entry = "  - {grpc: %[1]s, name: %[2]s, key: \"%[2]s-%[3]d:#{req.order_id}\"}\n"
	return "allow_rekey: true\nrules:\n" + fmt.Sprintf(entry, path("Pay"), "outer", version) + fmt.Sprintf(entry, path("Pay"), "inner", version)
}

// heldLocks answers with the locks that a call holds, with their versions.
func heldLocks(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
	var held []string
	for _, name := range []string{"outer", "inner"} {
		for v := range versions {
			if _, ok := core.Held(ctx, fmt.Sprintf("%s-%d:%s", name, v, req.GetOrderId())); ok {
				held = append(held, fmt.Sprintf("%s-%d", name, v))
			}
		}
	}
	return reply(strings.Join(held, " ")), nil
}

// A watched file is replaced while 8 callers make calls. No call fails, and the two rules of each call have
// the same version.
func TestReload_WatchedFileDuringCalls(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t testing.TB, path, text string){"rename": rulesettest.Replace, "symbolic link": rulesettest.Mount} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, seen := filepath.Join(t.TempDir(), "locks.yaml"), make(attempts, 1000)
			replace(t, file, twoLocks(versions-1))
			live, err := ruleset.Watch(file, ruleset.WithReloadObserver(func(r ruleset.Reload) { seen <- r }))
			must(t, err)
			t.Cleanup(func() { _ = live.Close() })
			b := setup(t, &shop{pay: heldLocks}, grpclock.WithSet(live))

			c := startCallers(b)
			t.Cleanup(c.end)
			for v := range versions {
				replace(t, file, twoLocks(v))
				must(t, seen.await(t, twoLocks(v)))
				b.call(t.Context(), "Pay", "new").check(t, fmt.Sprintf("outer-%[1]d inner-%[1]d", v))
				bad := strings.Replace(twoLocks(v), "req.order_id", "req.order_di", 1)
				replace(t, file, bad)
				if err := seen.await(t, bad); err == nil || !strings.Contains(err.Error(), "write req.order_id") {
					t.Errorf("a broken file: got %v", err)
				}
			}
			c.check(t)

			for _, head := range []string{"disabled: true\n", "dry_run: true\n"} {
				text := head + twoLocks(0)
				replace(t, file, text)
				must(t, seen.await(t, text))
				b.call(t.Context(), "Pay", "new").check(t, "")
			}
		})
	}
}

// callers call Pay until they are stopped.
type callers struct {
	ended atomic.Bool
	wg    sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int
}

func startCallers(b *bench) *callers {
	c := &callers{answers: map[string]int{}}
	for i := range 8 {
		c.wg.Go(func() {
			for !c.ended.Load() {
				got := b.call(context.Background(), "Pay", strconv.Itoa(i/2)) // two calls use one order
				text := strings.Join(got.replies, "+")
				if got.err != nil {
					text = got.err.Error()
				}
				c.mu.Lock()
				c.answers[text]++
				c.mu.Unlock()
			}
		})
	}
	return c
}

func (c *callers) end() {
	c.ended.Store(true)
	c.wg.Wait()
}

// check stops the callers and checks the answers that they got.
func (c *callers) check(t testing.TB) {
	t.Helper()
	c.end()
	for v := range versions {
		good := fmt.Sprintf("outer-%[1]d inner-%[1]d", v)
		if c.answers[good] == 0 {
			t.Errorf("no call was answered under version %d", v)
		}
		delete(c.answers, good)
	}
	for text, count := range c.answers {
		t.Errorf("%d calls were answered with %q", count, text)
	}
}

// Without Check and before any call, a reload that would change the lock of a method in the file is refused.
func TestReload_WithoutCheckKeepsLocks(t *testing.T) {
	t.Parallel()
	entry := func(endpoint, fields string) string { return "  - {grpc: " + endpoint + ", " + fields + "}\n" }
	file := func(entries ...string) string { return "rules:\n" + strings.Join(entries, "") }
	service, plain, refuse := entry("/till.v1.Till/*", "key: old"), tillMethod("Plain"), tillMethod("Refuse")
	const own = "till:#{req.item}" // the key in the .proto file
	for name, tt := range map[string]struct {
		old, next string
		want      string // "" if the reload succeeds
	}{
		"from a wildcard":            {file(service), file(service, entry(plain, "key: new")), `in place of "old"`},
		"from a wildcard, same key":  {file(service), file(service, entry(plain, "key: old, wait_time: 1s")), ""},
		"from a wildcard, to none":   {file(service), file(service, entry(plain, "none: true")), ""},
		"to a wildcard":              {file(service, entry(plain, "key: new")), file(service), `in place of "new"`},
		"from the .proto":            {elsewhere, file(entry(refuse, "key: new")), `in place of "` + own + `"`},
		"from the .proto by both":    {elsewhere, file(entry(refuse, "keys: ['"+own+"', new]")), ""},
		"to the .proto":              {file(entry(refuse, "key: new")), elsewhere, `in place of "new"`},
		"of the .proto, prefix":      {elsewhere, file(entry(refuse, "prefix: 'new:'")), `in place of "` + own + `"`},
		"of the .proto, not the key": {elsewhere, file(entry(refuse, "wait_time: 1s")), ""},
		"without a descriptor":       {file(entry("/away.v1.Away/*", "key: old")), file(entry("/away.v1.Away/Go", "key: new")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := openRules(t, tt.old)
			prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules))
			err := rules.change(t, tt.next)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if allowed := rules.change(t, "allow_rekey: true\n"+tt.next); allowed != nil {
				t.Errorf("refused though it is allowed: %v", allowed)
			}
		})
	}
}

// Such a reload is also refused if WithDescriptors supplies the descriptors.
func TestReload_WithoutCheckAndWithDescriptors(t *testing.T) {
	t.Parallel()
	files, _ := readLate(t, lateService(t, payLock, ""), nil)
	rules := openRules(t, elsewhere)
	prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithSet(rules))
	err := rules.change(t, "rules:\n  - {grpc: /late.v1.Orders/Pay, key: new}\n")
	if err == nil || !strings.Contains(err.Error(), `in place of`) {
		t.Errorf("got %v", err)
	}
}

// A mistake in a key also changes the lock. The guard reports only the mistake.
func TestReload_ReportsMistakeInsteadOfOtherLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fields, want string }{
		"in the key":       {`key: "till:#{req.itm}"`, "write req.item"},
		"in the condition": {`key: new, when: req.amont > 1`, "write req.amount"},
		"in the response":  {`key: new, on_busy: null_response, response: '{"txt": "a"}'`, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := openRules(t, elsewhere)
			prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(rules)).checkAndServe()
			err := rules.change(t, tillFile("Refuse", tt.fields))
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok || len(invalid.Problems) != 1 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want only %s", err, tt.want)
			}
		})
	}
}

// A reload is refused if it adds a rule for a method whose interceptor is missing.
func TestReload_MissingInterceptor(t *testing.T) {
	t.Parallel()
	rules := openRules(t, "rules: []\n")
	guard := newGuard(t, grpclock.WithSet(rules))
	guard.StreamServerInterceptor()
	server := grpc.NewServer()
	shoppb.RegisterOrdersServer(server, &shop{})
	if err := guard.Check(server); err != nil {
		t.Fatal(err)
	}
	if err := rules.change(t, "rules:\n  - {grpc: /shop.v1.Orders/Pay, key: \"order:#{req.order_id}\"}\n"); err == nil || !strings.Contains(err.Error(), "UnaryServerInterceptor") {
		t.Errorf("got %v", err)
	}
}
