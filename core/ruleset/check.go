package ruleset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNameLength = 100
	maxTemplates  = 100

	templateCount = "%d templates: write 1 to %d"
)

// checker collects what is wrong with one rule.
type checker struct {
	rule     *Resolved
	declared []Declared // what the rule was made of, lowest layer first
	at       Source     // of what is looked at, whose words messages are to use
	problems []*Problem
}

// look makes messages use the words of the place where the field has its value.
func (c *checker) look(field string) { c.at = c.rule.placeOf(field) }

func (c *checker) inFile() bool { return c.at.inFile() }

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
	c.at = c.rule.place()
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
	c.checkKindOfKeys()
	c.checkPermits()
	c.checkToken()
	c.checkSharing()
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
			c.look(field)
			c.checkValue(field)
		}
	}
}

func (c *checker) checkValue(field string) {
	r := c.rule
	switch field {
	case "kind":
		c.reportWord(field, checkKind(string(r.Kind)))
	case "wait_time":
		c.checkWait()
	case "lease_time":
		c.checkLease()
	case "on_busy":
		c.reportWord(field, r.OnBusy.Validate())
	case "on_backend":
		c.reportWord(field, r.OnBackend.Validate())
	case "on_key":
		c.reportWord(field, r.OnKey.Validate())
	case "on_overload":
		c.reportWord(field, r.OnOverload.Validate())
	case "on_lost":
		c.reportWord(field, r.OnLost.Validate())
	case "when":
		c.checkWhen()
	case "debounce":
		c.checkWindow()
	case "max_waiters":
		c.checkCount(field, r.MaxWaiters, "0 or leave it out for the client's limit")
	case "permits":
		c.checkNumberOfPermits()
	case "status":
		c.reportErr(field, r.Status.Validate())
	case "response":
		c.checkResponse()
	case "message":
		c.checkMessage()
	case "prefix":
		c.checkPrefix()
	case "key_format":
		c.reportWord(field, checkKeyFormat(string(r.KeyFormat)))
	}
}

func (c *checker) checkEndpoint(required bool) {
	e := c.rule.Endpoint
	switch {
	case !e.IsZero():
		if message := e.problem(c.inFile()); message != "" {
			c.reportf("endpoint", "%s", message)
		}
	case required && c.inFile():
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
	c.look("keys")
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
		c.reportf("key", "%s%s%s", keyMissing, quote(r.Endpoint.template()), c.elsewhere())
	}
}

// keyMissing precedes an example of a template.
const keyMissing = "missing: write a template such as "

// elsewhere says how an entry of a file gets the key of a rule that is written in Go,
// where that does not happen by itself.
func (c *checker) elsewhere() string {
	if c.rule.layer() != LayerYAML || c.rule.Endpoint.Transport != TransportHTTP || len(c.declared) > 1 {
		return ""
	}
	return ", or give the rule that is written in Go to ruleset.WithRules"
}

// checkNone reports what a rule without a lock cannot have. Where a lower layer has
// the rule, that is all there is to say.
func (c *checker) checkNone() {
	none := c.rule.Source("none").Layer
	c.look("none")
	for _, d := range slices.Backward(c.declared) {
		if d.Source.Layer < none && !d.Rule.None {
			c.reportf("none", "the rule is declared in %s, and none says that there is none: write disabled: true to switch it off", d.Source.where())
			return
		}
	}
	for _, field := range ruleFields.names {
		switch {
		case field == "endpoint" || field == "name" && c.rule.Source("name").Layer > none || field == "none" || !c.rule.declared(field):
		case c.rule.Source(field).Layer > none:
			c.look(field)
			c.reportf(field, "%s says that the endpoint needs no lock: write %s: false, too, to lock it after all", c.rule.Source("none").where(), c.spell("none"))
			return
		default:
			c.reportf(field, "beside %s, which says that the endpoint needs no lock: remove one of them", c.spell("none"))
		}
	}
}

func (c *checker) checkTemplates() {
	keys := c.rule.Keys
	if len(keys) == 0 || len(keys) > maxTemplates {
		c.reportf("keys", templateCount, len(keys), maxTemplates)
		return
	}
	for i, key := range keys {
		if isBlank(key) {
			c.reportf(fmt.Sprintf("keys[%d]", i), "blank: write a template such as %q", c.rule.Endpoint.oneOfSeveral())
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

func (c *checker) checkNumberOfPermits() {
	if n := c.rule.Permits; n < 1 || n > MaxPermits {
		c.reportf("permits", "%d is out of range: write how many calls may run at once, across all instances: 1 to %d", n, MaxPermits)
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
