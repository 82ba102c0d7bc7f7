package grpclock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/tillpb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// sameRule is a rule in three forms: in till.proto under the name of the method, in Go, and as an entry of a
// rule file. It also contains the expected answers, which are the same for all forms.
type sameRule struct {
	method string
	inGo   []ruleset.Rule
	inYAML []string
	calls  func(ctx context.Context, b *bench, method string) []string
	want   []string
}

// tillRule returns the rule on which the rules of most methods are based.
func tillRule(change func(r *ruleset.Rule)) []ruleset.Rule {
	r := ruleset.Rule{Key: "till:#{req.item}", WaitTime: ruleset.NoWait}
	change(&r)
	return []ruleset.Rule{r}
}

// callTaken calls a method for an item whose lock another holder has, and then for another item.
func callTaken(ctx context.Context, b *bench, method string) []string {
	b.redis.Take("till:1", time.Minute)
	return []string{b.sell(ctx, method, sale("1", 1)), b.sell(ctx, method, sale("2", 1))}
}

const (
	busy      = "Aborted | interlock/LOCK_BUSY | Another request for the same resource is in progress"
	noKey     = "InvalidArgument | interlock/LOCK_KEY_INVALID | The request does not identify the resource to lock"
	debounced = "ResourceExhausted | interlock/LOCK_DEBOUNCED | The same request was made a moment ago"
	outage    = "Unavailable | interlock/LOCK_BACKEND_UNAVAILABLE | Locking is temporarily unavailable"
	lost      = "Internal | interlock/LOCK_LOST | The lock was lost while the request ran; its outcome is unknown"
)

var sameRules = []sameRule{
	{
		"Refuse", tillRule(func(*ruleset.Rule) {}),
		[]string{`{key: "till:#{req.item}", wait_time: none}`},
		callTaken,
		[]string{busy, "OK | Refuse 2"},
	},
	{
		"Skip", tillRule(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }),
		[]string{`{key: "till:#{req.item}", wait_time: none, on_busy: skip}`},
		callTaken,
		[]string{"OK | skipped | (empty)", "OK | Skip 2"},
	},
	{
		"Null", tillRule(func(r *ruleset.Rule) {
			r.WaitTime, r.OnBusy, r.Response = 300*time.Millisecond, failpolicy.NullResponse, `{"text": "nothing"}`
		}),
		[]string{`{key: "till:#{req.item}", wait_time: 300ms, on_busy: null_response, response: '{"text": "nothing"}'}`},
		callTaken,
		[]string{"OK | null | nothing", "OK | Null 2"},
	},
	{
		"Queue", tillRule(func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "queue" }),
		[]string{`{key: "till:#{req.item}", wait_time: none, on_busy: fallback, fallback: queue}`},
		callTaken,
		[]string{"OK | queued 1", "OK | Queue 2"},
	},
	{
		"Anyway", tillRule(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Proceed }),
		[]string{`{key: "till:#{req.item}", wait_time: none, on_busy: proceed}`},
		callTaken,
		[]string{"OK | unlocked | Anyway 1", "OK | Anyway 2"},
	},
	{
		"Status", tillRule(func(r *ruleset.Rule) {
			r.Message = "come back later"
			r.Status.Busy = failpolicy.Status{HTTP: 423, GRPC: failpolicy.Code(codes.FailedPrecondition)}
			r.Status.Key.GRPC = failpolicy.Code(codes.OutOfRange)
		}),
		[]string{`{key: "till:#{req.item}", wait_time: none, message: come back later, status: {busy: {http: 423, grpc: FAILED_PRECONDITION}, key: {grpc: OUT_OF_RANGE}}}`},
		func(ctx context.Context, b *bench, method string) []string {
			return append(callTaken(ctx, b, method), b.sell(ctx, method, sale("", 1)))
		},
		[]string{
			"FailedPrecondition | interlock/LOCK_BUSY | come back later", "OK | Status 2",
			"OutOfRange | interlock/LOCK_KEY_INVALID | come back later",
		},
	},
	{
		"NoKey",
		[]ruleset.Rule{{Key: "till:#{req.item}", OnKey: failpolicy.Skip}},
		[]string{`{key: "till:#{req.item}", on_key: skip}`},
		func(ctx context.Context, b *bench, method string) []string {
			return []string{b.sell(ctx, method, sale("", 1)), b.sell(ctx, method, sale("2", 1))}
		},
		[]string{"OK | skipped | (empty)", "OK | NoKey 2"},
	},
	{
		"Backend",
		[]ruleset.Rule{{Key: "till:#{req.item}", OnBackend: failpolicy.NullResponse}},
		[]string{`{key: "till:#{req.item}", on_backend: null_response}`},
		func(ctx context.Context, b *bench, method string) []string {
			b.redis.Down()
			return []string{b.sell(ctx, method, sale("1", 1))}
		},
		[]string{"OK | null | (empty)"},
	},
	{
		"Overload",
		[]ruleset.Rule{{Key: "till:#{req.item}", WaitTime: ruleset.WaitForever, MaxWaiters: 1, OnOverload: failpolicy.Skip}},
		[]string{`{key: "till:#{req.item}", wait_time: forever, max_waiters: 1, on_overload: skip}`},
		callCrowd,
		[]string{"OK | skipped | (empty)", "Canceled | context canceled"},
	},
	{
		"Once",
		[]ruleset.Rule{{Key: "till:#{req.item}", Debounce: time.Minute}},
		[]string{`{key: "till:#{req.item}", debounce: 1m}`},
		func(ctx context.Context, b *bench, method string) []string {
			return []string{b.sell(ctx, method, sale("1", 1)), b.sell(ctx, method, sale("1", 1)), b.sell(ctx, method, sale("2", 1))}
		},
		[]string{"OK | Once 1", debounced, "OK | Once 2"},
	},
	{
		"Off",
		[]ruleset.Rule{{Key: "till:#{req.item}", Disabled: true}},
		[]string{`{key: "till:#{req.item}", disabled: true}`},
		callTaken,
		[]string{"OK | Off 1", "OK | Off 2"},
	},
	{
		"Dry",
		[]ruleset.Rule{{Key: "till:#{req.item}", DryRun: true}},
		[]string{`{key: "till:#{req.item}", dry_run: true}`},
		callTaken,
		[]string{"OK | Dry 1", "OK | Dry 2"},
	},
	{
		"Large", tillRule(func(r *ruleset.Rule) { r.When = "req.amount > 100" }),
		[]string{`{key: "till:#{req.item}", wait_time: none, when: req.amount > 100}`},
		func(ctx context.Context, b *bench, method string) []string {
			b.redis.Take("till:1", time.Minute)
			return []string{b.sell(ctx, method, sale("1", 100)), b.sell(ctx, method, sale("1", 101))}
		},
		[]string{"OK | Large 1", busy},
	},
	{
		"Lost",
		[]ruleset.Rule{{Key: "till:#{req.item}", LeaseTime: 200 * time.Millisecond, OnLost: failpolicy.Fail}},
		[]string{`{key: "till:#{req.item}", lease_time: 200ms, on_lost: fail}`},
		func(ctx context.Context, b *bench, method string) []string {
			return []string{b.sell(ctx, method, sale("1", 1))}
		},
		[]string{lost},
	},
	{
		"Strict",
		[]ruleset.Rule{{
			Keys: []string{"#{req.item}", "all"}, Prefix: "till:", Kind: ruleset.Reentrant, Profile: "heavy",
			WaitTime: ruleset.NoWait, KeyFormat: ruleset.Strict,
		}},
		[]string{`{keys: ["#{req.item}", all], prefix: "till:", kind: reentrant, profile: heavy, wait_time: none, key_format: strict}`},
		func(ctx context.Context, b *bench, method string) []string {
			answers := append(callTaken(ctx, b, method), b.sell(ctx, method, sale("a%b", 1)))
			b.redis.Take("till:all", time.Minute)
			return append(answers, b.sell(ctx, method, sale("2", 1)))
		},
		[]string{busy, "OK | Strict 2", noKey, busy},
	},
	{
		"Both",
		[]ruleset.Rule{
			{Name: "day", Key: "till:day", WaitTime: ruleset.NoWait},
			{Name: "item", Key: "till:#{req.item}", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip},
		},
		[]string{
			`{name: day, key: "till:day", wait_time: none}`,
			`{name: item, key: "till:#{req.item}", wait_time: none, on_busy: skip}`,
		},
		func(ctx context.Context, b *bench, method string) []string {
			answers := callTaken(ctx, b, method)
			b.redis.Take("till:day", time.Minute)
			return append(answers, b.sell(ctx, method, sale("2", 1)))
		},
		[]string{"OK | skipped | (empty)", "OK | Both 2", busy},
	},
	{
		"Scan", tillRule(func(r *ruleset.Rule) { r.OnBusy = failpolicy.NullResponse }),
		[]string{`{key: "till:#{req.item}", wait_time: none, on_busy: null_response}`},
		callTakenStream,
		[]string{"OK | null | (empty)", "OK | Scan 3"},
	},
	{
		"Watch", tillRule(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }),
		[]string{`{key: "till:#{req.item}", wait_time: none, on_busy: skip}`},
		callTaken,
		[]string{"OK | skipped", "OK | Watch 2"},
	},
	{
		"Talk", tillRule(func(*ruleset.Rule) {}),
		[]string{`{key: "till:#{req.item}", wait_time: none}`},
		callTakenStream,
		[]string{busy, "OK | Talk 2+Talk 3"},
	},
	{
		"Free",
		[]ruleset.Rule{{None: true}},
		[]string{`{none: true}`},
		callTaken,
		[]string{"OK | Free 1", "OK | Free 2"},
	},
}

// callTakenStream is like callTaken, but sends two messages in each call.
func callTakenStream(ctx context.Context, b *bench, method string) []string {
	b.redis.Take("till:1", time.Minute)
	return []string{b.sell(ctx, method, sale("1", 1), sale("3", 1)), b.sell(ctx, method, sale("2", 1), sale("3", 1))}
}

// callCrowd makes two calls for a lock that another holder has. One of them may wait; callCrowd then ends it.
func callCrowd(ctx context.Context, b *bench, method string) []string {
	b.redis.Take("till:1", time.Minute)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan string, 2)
	for range 2 {
		go func() { answers <- b.sell(ctx, method, sale("1", 1)) }()
	}
	first := <-answers
	cancel()
	return []string{first, <-answers}
}

// layers returns the options of a guard for each of the three forms.
func (s *sameRule) layers(t *testing.T) map[string][]any {
	without := grpclock.WithDescriptors(withoutOptions(t))
	return map[string][]any{
		"go":    {without, grpclock.WithRules(s.rules()...)},
		"yaml":  {without, grpclock.WithSet(load(t, s.file()))},
		"proto": nil,
	}
}

// timeout returns the backend timeout.
func (s *sameRule) timeout() time.Duration {
	if s.method == "Backend" {
		return 300 * time.Millisecond
	}
	return patient
}

func (s *sameRule) endpoint() ruleset.Endpoint { return ruleset.GRPC(tillMethod(s.method)) }

func (s *sameRule) rules() []ruleset.Rule {
	rules := slices.Clone(s.inGo)
	for i := range rules {
		rules[i].Endpoint = s.endpoint()
	}
	return rules
}

// file returns the rule file.
func (s *sameRule) file() string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for _, entry := range s.inYAML {
		text.WriteString("  - {grpc: " + tillMethod(s.method) + ", " + strings.TrimPrefix(entry, "{") + "\n")
	}
	return text.String()
}

func TestLayers_SameBehaviour(t *testing.T) {
	t.Parallel()
	handler := func(ctx context.Context, method string, sale *tillpb.Sale) (*tillpb.Receipt, error) {
		if method == "Lost" {
			<-ctx.Done()
		}
		return sellAll(ctx, method, sale)
	}
	for _, s := range sameRules {
		for layer, opts := range s.layers(t) {
			t.Run(s.method+"/"+layer, func(t *testing.T) {
				t.Parallel()
				b := prepareTill(t, s.timeout(), handler, append(opts, tillQueue())...).checkAndServe()
				if got := s.calls(t.Context(), b, s.method); !slices.Equal(got, s.want) {
					t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(s.want, "\n"))
				}
			})
		}
	}
}

func TestLayers_SameDump(t *testing.T) {
	t.Parallel()
	for _, s := range sameRules {
		options, problems := protorules.Of(tillMethods().ByName(protoreflect.Name(s.method)))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		inProto, err := ruleset.BuildSet(options)
		if err != nil {
			t.Fatal(err)
		}
		inGo, err := ruleset.NewSet(s.rules())
		if err != nil {
			t.Fatal(err)
		}
		want := dump(t, inGo, false)
		for layer, set := range map[string]*ruleset.Set{"proto": inProto, "yaml": load(t, s.file())} {
			if got := dump(t, set, false); got != want {
				t.Errorf("%s/%s: got:\n%s\nwant as in Go:\n%s", s.method, layer, got, want)
			}
		}
		if text := dump(t, inProto, true); !strings.Contains(text, "tillpb/till.proto") {
			t.Errorf("%s: the dump does not mention the .proto file:\n%s", s.method, text)
		}
	}
}

func dump(t *testing.T, set *ruleset.Set, sources bool) string {
	t.Helper()
	d := set.Dump()
	d.NoSources = !sources
	var text strings.Builder
	if err := d.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// The table contains every method with an option, and every option of the file.
func TestLayers_AllOptionsCompared(t *testing.T) {
	t.Parallel()
	methods := tillMethods()
	for i := range methods.Len() {
		m := methods.Get(i)
		options, _ := protorules.Of(m)
		compared := slices.ContainsFunc(sameRules, func(s sameRule) bool { return s.method == string(m.Name()) })
		if compared != (len(options) > 0) {
			t.Errorf("%s has %d options, compared: %v", m.Name(), len(options), compared)
		}
	}
	if proto.Size(tillMethods().ByName("Plain").Options()) > 0 {
		t.Error("Plain has options")
	}
}

func TestLayers_FileOverOptions(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, method, entry, want string }{
		{"on_busy only", "Refuse", "on_busy: null_response", "OK | null | (empty)"},
		{"status only, another strategy stays", "Skip", "message: no", "OK | skipped | (empty)"},
		{"disabled", "Refuse", "disabled: true", "OK | Refuse 1"},
		{"disabled taken back", "Off", "disabled: false, wait_time: none", busy},
		{"dry run", "Refuse", "dry_run: true", "OK | Refuse 1"},
		{"key replaced", "Refuse", `key: "other:#{req.item}"`, "OK | Refuse 1"},
		{"one of two, by its name", "Both", "name: item, on_busy: error", busy},
		{"a rule beside the option", "Plain", `key: "till:#{req.item}", wait_time: none`, busy},
		{"a lock where the option has none", "Count", `key: "till:#{req.item}", wait_time: none`, busy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "rules:\n  - {grpc: "+tillMethod(tt.method)+", "+tt.entry+"}\n")
			b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(set)).checkAndServe()
			b.redis.Take("till:1", time.Minute)
			if got := b.sell(t.Context(), tt.method, sale("1", 1)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLayers_FileChangesWaitTime(t *testing.T) {
	t.Parallel()
	set := load(t, "rules:\n  - {grpc: "+tillMethod("Refuse")+", wait_time: 10m}\n")
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(set)).checkAndServe()
	b.redis.Take("till:1", time.Minute)
	answer := make(chan string)
	go func() { answer <- b.sell(t.Context(), "Refuse", sale("1", 1)) }()
	select {
	case got := <-answer:
		t.Errorf("did not wait: %q", got)
	case <-time.After(50 * time.Millisecond): // the call waits, or has not begun yet; both are accepted
		b.redis.Free("till:1")
		if got := <-answer; got != "OK | Refuse 1" {
			t.Errorf("got %q", got)
		}
	}
}

func TestLayers_FileOverCodeAndOptions(t *testing.T) {
	t.Parallel()
	code := ruleset.Rule{Endpoint: ruleset.GRPC(tillMethod("Refuse")), Key: "code", OnBusy: failpolicy.NullResponse, Response: `{"text": "code"}`}
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithRules(code)).checkAndServe()
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | null | code" {
		t.Errorf("options over code: got %q, want the key of the option and the answer of the code", got)
	}
	set := load(t, "rules:\n  - {grpc: "+tillMethod("Refuse")+", response: '{\"text\": \"file\"}'}\n", ruleset.WithRules(code))
	b = prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(set)).checkAndServe()
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | null | file" {
		t.Errorf("a file over options over code: got %q", got)
	}
}

func TestLayers_WildcardsAndOptions(t *testing.T) {
	t.Parallel()
	set := load(t, "rules:\n  - {grpc: /till.v1.Till/*, key: all, wait_time: none}\n")
	b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(set)).checkAndServe()
	b.redis.Take("all", time.Minute)
	for method, want := range map[string]string{"Plain": busy, "Count": busy, "Refuse": "OK | Refuse 1", "Free": "OK | Free 1"} {
		if got := b.sell(t.Context(), method, sale("1", 1)); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

func TestLayers_DefaultsOfFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"profiles: {default: {on_busy: skip}}\n" + elsewhere:         "OK | skipped | (empty)",
		"disabled: true\n" + elsewhere:                               "OK | Refuse 1",
		"dry_run: true\n" + elsewhere:                                "OK | Refuse 1",
		"profiles: {default: {message: closed today}}\n" + elsewhere: "Aborted | interlock/LOCK_BUSY | closed today",
	} {
		b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(load(t, text))).checkAndServe()
		b.redis.Take("till:1", time.Minute)
		if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestLayers_MistakesFoundByCheck(t *testing.T) {
	t.Parallel()
	for entry, wants := range map[string][]string{
		"{grpc: /till.v1.Till/Both, name: itme, wait_time: 1s}": {
			`locks.yaml:2:5: rule "itme" of grpc /till.v1.Till/Both: key: missing`, `give its name: "day" or "item"`,
		},
		"{grpc: /till.v1.Till/Plain, wait_time: 1s}":    {`locks.yaml:2:5: rule of grpc /till.v1.Till/Plain: key: missing`},
		"{grpc: /till.v1.Till/Refus, wait_time: 1s}":    {`locks.yaml:2:`, `did you mean "/till.v1.Till/Refuse"?`},
		`{grpc: /till.v1.Till/Skip, key: "#{req.itm}"}`: {`locks.yaml:2:`, "write req.item"},
		`{grpc: /till.v1.Till/Null, fallback: till}`:    {`locks.yaml:2:`, `fallback: "till" is never used`},
	} {
		b := prepareTill(t, patient, sellAll, tillQueue(), grpclock.WithSet(load(t, "rules:\n  - "+entry+"\n")))
		err := b.guard.Check(b.server)
		if err == nil {
			t.Errorf("%s: no error", entry)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", entry, err, want)
			}
		}
	}
}
