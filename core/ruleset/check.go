package ruleset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/failpolicy"
)

const (
	maxNameLength = 100
	maxTemplates  = 100
)

// checker collects what is wrong with one rule.
type checker struct {
	rule     *Resolved
	declared []Declared // what the rule was made of, lowest layer first
	problems []*Problem
}

func (c *checker) reportf(field, format string, args ...any) {
	if base, _ := cutField(field); c.rule.broken.has(fieldIndex(base)) {
		return
	}
	c.problems = append(c.problems, c.rule.Problem(field, fmt.Sprintf(format, args...)))
}

// reportErr reports each line of err as a problem of its own.
func (c *checker) reportErr(field string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		c.reportf(field, "%s", strings.TrimSpace(line))
	}
}

// check looks at a whole rule. Values from defaults and profiles were checked where
// they were given; here they only count in combinations.
func (c *checker) check(requireEndpoint bool) {
	c.checkEndpoint(requireEndpoint)
	if c.rule.None {
		c.checkNone()
		return
	}
	c.checkName()
	c.checkKeys()
	var own fieldSet
	for i, s := range c.rule.sources {
		if s.Layer >= LayerCode {
			own = own.with(i)
		}
	}
	c.checkValues(own)
	if c.rule.partial {
		return // what belongs together is known when the lower layers are
	}
	c.checkFallback()
	c.checkDebounce()
	c.checkUnused()
}

// checkShared looks at values for many rules: defaults or a profile.
func (c *checker) checkShared(set fieldSet) {
	for _, field := range []string{"endpoint", "name", "key", "keys", "profile"} {
		if set.has(fieldIndex(field)) {
			c.problems = append(c.problems, &Problem{
				Field: field, Source: c.rule.Source(field),
				Message: "belongs to a single rule: remove it here",
			})
		}
	}
	c.checkValues(set)
}

// checkValues looks at each of the given fields by itself.
func (c *checker) checkValues(set fieldSet) {
	for i, field := range ruleFields.names {
		if set.has(i) {
			c.checkValue(field)
		}
	}
}

func (c *checker) checkValue(field string) {
	r := c.rule
	switch field {
	case "kind":
		c.checkWord(field, string(r.Kind), words(Kinds()))
	case "wait_time":
		c.checkWait()
	case "lease_time":
		c.checkLease()
	case "on_busy":
		c.reportErr(field, r.OnBusy.Validate())
	case "on_backend":
		c.reportErr(field, r.OnBackend.Validate())
	case "on_key":
		c.reportErr(field, r.OnKey.Validate())
	case "on_overload":
		c.reportErr(field, r.OnOverload.Validate())
	case "on_lost":
		c.reportErr(field, r.OnLost.Validate())
	case "when":
		c.checkWhen()
	case "debounce":
		c.checkWindow()
	case "max_waiters":
		c.checkCount(field, r.MaxWaiters, "0 or leave it out for the client's limit")
	case "permits":
		c.reportf(field, "permits belong to semaphores, and the only kind is %q: remove it", Reentrant)
	case "status":
		c.reportErr(field, r.Status.Validate())
	case "response":
		c.checkResponse()
	case "message":
		c.checkMessage()
	case "prefix":
		c.checkPrefix()
	case "key_format":
		c.checkWord(field, string(r.KeyFormat), words(KeyFormats()))
	}
}

func words[T ~string](list []T) []string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = string(w)
	}
	return names
}

func (c *checker) checkWord(field, word string, known []string) {
	if !slices.Contains(known, word) {
		c.reportf(field, "%s", unknownWord(field, word, known))
	}
}

func (c *checker) checkEndpoint(required bool) {
	e := c.rule.Endpoint
	switch {
	case !e.IsZero():
		if message := e.problem(c.rule.inFile()); message != "" {
			c.reportf("endpoint", "%s", message)
		}
	case required && c.rule.inFile():
		c.reportf("endpoint", "%s", endpointMissing)
	case required:
		c.reportf("endpoint", `missing: write HTTP("POST /orders/:id/pay"), GRPC("/shop.Orders/Pay") or Func("close-day")`)
	}
}

func (c *checker) checkName() {
	name := c.rule.Name
	switch {
	case !c.rule.declared("name"):
	case isBlank(name):
		c.reportf("name", "blank: write a word such as \"pay-order\", or leave it out")
	case len(name) > maxNameLength:
		c.reportf("name", "%d bytes long: a label has at most %d", len(name), maxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl), !utf8.ValidString(name):
		c.reportf("name", "%q contains control characters or is not UTF-8: write a word such as \"pay-order\"", name)
	case hasPlaceholder(name):
		c.reportf("name", "%q is a metric label and must not contain request data: put #{…} into the key", name)
	}
}

func hasPlaceholder(s string) bool {
	return strings.Contains(s, "#{") || strings.Contains(s, "${") || strings.Contains(s, "{{")
}

func (c *checker) checkKeys() {
	r := c.rule
	switch {
	case r.declared("key") && r.declared("keys"):
		c.reportf("keys", "both %s and %s are set: put every template into %s", c.spell("key"), c.spell("keys"), c.spell("keys"))
	case r.declared("keys"):
		c.checkTemplates()
	case r.declared("key"):
		if isBlank(r.Key) {
			c.reportf("key", "blank: write a template such as %q", r.Endpoint.template())
		}
	case !r.partial && !r.broken.hasAny("key", "keys", "none"):
		c.reportf("key", "%s%s%s", keyMissing, quote(r.Endpoint.template()), r.elsewhere())
	}
}

// keyMissing precedes an example of a template.
const keyMissing = "missing: write a template such as "

// elsewhere says how an entry of a file gets the key of a rule that is written in Go,
// where that does not happen by itself.
func (r *Resolved) elsewhere() string {
	if r.layer() != LayerYAML || r.Endpoint.Transport != TransportHTTP {
		return ""
	}
	return ", or give the rule that is written in Go to ruleset.WithRules"
}

// checkNone reports what a rule without a lock cannot have. Where a lower layer has
// the rule, that is all there is to say.
func (c *checker) checkNone() {
	none := c.rule.Source("none").Layer
	for _, d := range slices.Backward(c.declared) {
		if d.Source.Layer < none && !d.Rule.None {
			c.reportf("none", "the rule is declared in %s, and none says that there is none: write disabled: true to switch it off", d.Source.where())
			return
		}
	}
	for _, field := range ruleFields.names {
		if field != "endpoint" && field != "none" && c.rule.declared(field) {
			c.reportf(field, "beside %s, which says that the endpoint needs no lock: remove one of them", c.spell("none"))
		}
	}
}

func (c *checker) checkTemplates() {
	keys := c.rule.Keys
	if len(keys) == 0 || len(keys) > maxTemplates {
		c.reportf("keys", "%d templates: write 1 to %d", len(keys), maxTemplates)
	}
	for i, key := range keys {
		if isBlank(key) {
			c.reportf(fmt.Sprintf("keys[%d]", i), "blank: write a template such as %q", "stock:#{path.sku}")
		} else if first := slices.Index(keys, key); first < i {
			c.reportf(fmt.Sprintf("keys[%d]", i), "the same as %s[%d]: remove one", c.spell("keys"), first)
		}
	}
}

func (c *checker) checkWhen() {
	when := c.rule.When
	switch {
	case isBlank(when):
		c.reportf("when", "blank: write a condition such as %s, or leave it out", c.quote(`query.mode == "async"`))
	case strings.HasPrefix(strings.TrimSpace(when), "#{"):
		bare := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(when), "#{"), "}")
		c.reportf("when", "a condition is a bare expression: write %s without #{…}", c.quote(strings.TrimSpace(bare)))
	}
}

func (c *checker) checkCount(field string, n int, instead string) {
	if n < 0 {
		c.reportf(field, "%d is negative: write %s", n, instead)
	}
}

func (c *checker) checkResponse() {
	if !json.Valid([]byte(c.rule.Response)) {
		c.reportf("response", "%s is not JSON: write a document such as %s", c.quote(c.rule.Response), c.quote(`{"status":"pending"}`))
	}
}

func (c *checker) checkMessage() {
	if message := c.rule.Message; !utf8.ValidString(message) {
		c.reportf("message", "%q is not UTF-8, and no answer can carry it: write a sentence", message)
	}
}

func (c *checker) checkPrefix() {
	switch prefix := c.rule.Prefix; {
	case hasPlaceholder(prefix):
		c.reportf("prefix", "%q is the same for every request: put #{…} into the key", prefix)
	case strings.ContainsFunc(prefix, unicode.IsControl):
		c.reportf("prefix", "%q contains control characters: write a word such as \"shop:\"", prefix)
	}
}

func (c *checker) checkFallback() {
	r := c.rule
	policy := r.Policy()
	if r.broken.hasAny("fallback") || r.strategyBroken() {
		return
	}
	if r.Fallback != "" && !policy.Uses(failpolicy.Fallback) {
		if r.declared("fallback") {
			c.reportf("fallback", "%q is never used: write %s, or remove it", r.Fallback, r.example("on_busy", c.spell("fallback")))
		}
		return
	}
	if r.Fallback != "" {
		return
	}
	for field, strategy := range c.strategies() {
		if strategy == failpolicy.Fallback {
			c.reportf(field, "the strategy needs the name of a handler: write %s", r.example("fallback", `"name"`))
		}
	}
}

// strategyBroken reports whether a strategy is unreadable, or may be in a profile
// that is not known.
func (r *Resolved) strategyBroken() bool {
	return r.broken.hasAny("on_busy", "on_backend", "on_key", "on_overload", "profile")
}

// strategies are the strategies by field, in order.
func (c *checker) strategies() func(func(string, failpolicy.Strategy) bool) {
	r := c.rule
	fields := []string{"on_busy", "on_backend", "on_key", "on_overload"}
	values := []failpolicy.Strategy{r.OnBusy, r.OnBackend, r.OnKey, r.OnOverload}
	return func(yield func(string, failpolicy.Strategy) bool) {
		for i, field := range fields {
			if !yield(field, values[i]) {
				return
			}
		}
	}
}

func (c *checker) checkDebounce() {
	r := c.rule
	if r.Debounce <= 0 {
		return
	}
	if r.declared("wait_time") && r.WaitTime != NoWait {
		c.reportf("wait_time", "a debounced call never waits: remove %s or %s", c.spell("wait_time"), c.spell("debounce"))
	}
	if r.declared("lease_time") && r.LeaseTime != Watchdog {
		c.reportf("lease_time", "a debounced handler is held by the watchdog, and the window begins after it: remove %s", c.spell("lease_time"))
	}
	if r.OnBusy == failpolicy.Proceed {
		c.reportf("on_busy", "proceeding inside the window undoes %s: write another strategy, or remove one", c.spell("debounce"))
	}
}

// checkUnused reports what the rest of the rule makes meaningless.
func (c *checker) checkUnused() {
	r := c.rule
	policy := r.Policy()
	if r.declared("response") && r.Response != "" && !policy.Uses(failpolicy.NullResponse) && !r.strategyBroken() {
		c.reportf("response", "never used: write %s, or remove it", r.example("on_busy", c.spell("null_response")))
	}
	if r.declared("max_waiters") && r.MaxWaiters > 0 && (r.WaitTime == NoWait || r.Debounce > 0) {
		c.reportf("max_waiters", "nobody waits under this rule: remove it")
	}
	if r.declared("on_overload") && r.OnOverload != failpolicy.Error && (r.WaitTime == NoWait || r.Debounce > 0) {
		c.reportf("on_overload", "nobody waits under this rule, so there is no overload: remove it")
	}
}
