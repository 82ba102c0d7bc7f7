package httpcall

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// LockRule calls [aspect.LockRule] and also refuses [failpolicy.Fail] as OnLost, which needs the buffer of a guard.
func LockRule(key string, further []ruleset.Rule) (ruleset.Rule, error) {
	r, err := aspect.LockRule(key, further)
	if err == nil && r.OnLost == failpolicy.Fail {
		err = errors.New("OnLost: failpolicy.Fail needs a buffer: use a guard with WithBuffer, or remove it")
	}
	return r, err
}

// CallSite returns the file and line of the call of the exported function that calls CallSite.
func CallSite() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "an unknown line"
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// ProblemsAt returns the problems that are joined in err. Their messages name a place in the program instead of the
// endpoint.
func ProblemsAt(place string, err error) []*ruleset.Problem {
	var found aspect.Report
	found.Add(ruleset.Endpoint{}, err)
	problems := found.Errors()
	for i, p := range problems {
		problems[i] = &ruleset.Problem{Message: strings.Replace(p.Text(), p.Endpoint.String(), place, 1), Err: p.Err}
	}
	return problems
}

// Places holds the entries of a handler that the program puts into chains, for each route whose chain has it. The zero
// value is empty.
type Places struct {
	mu    sync.Mutex // for writers of known
	known atomic.Pointer[map[ruleset.Endpoint]*Entry]
}

// At returns the entry of a route, nil if the handler does not guard it. The first call for a route calls compile. For
// a known route, At takes no lock and does not allocate.
func (p *Places) At(route ruleset.Endpoint, compile func() *Entry) *Entry {
	if e, known := p.find(route); known {
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.find(route)
	if known {
		return e
	}
	next := map[ruleset.Endpoint]*Entry{route: compile()}
	if before := p.known.Load(); before != nil {
		maps.Copy(next, *before)
	}
	p.known.Store(&next)
	return next[route]
}

// Len returns the number of known routes that the handler guards.
func (p *Places) Len() (n int) {
	if all := p.known.Load(); all != nil {
		for _, e := range *all {
			if e != nil {
				n++
			}
		}
	}
	return n
}

func (p *Places) find(route ruleset.Endpoint) (e *Entry, known bool) {
	if all := p.known.Load(); all != nil {
		e, known = (*all)[route]
	}
	return e, known
}

// Numbers gives rules without a name different names if several handlers of one route have one. The zero value is ready.
type Numbers struct {
	mu     sync.Mutex
	routes map[ruleset.Endpoint][]any // the handlers, in the order in which Name met them
}

// Name returns the rules of a handler for a route. It gives a single rule without a name a name that no other handler
// uses on the route: the default for the first handler, "POST /orders (2)" for the second.
func (n *Numbers) Name(handler any, route ruleset.Endpoint, rules []ruleset.Rule) []ruleset.Rule {
	if len(rules) != 1 || rules[0].Name != "" {
		return rules
	}
	i := n.number(handler, route)
	if i == 1 {
		return rules
	}
	rule := rules[0]
	rule.Name = fmt.Sprintf("%s (%d)", route.Label(), i)
	return []ruleset.Rule{rule}
}

func (n *Numbers) number(handler any, route ruleset.Endpoint) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.routes[route], handler)
	if i < 0 {
		if n.routes == nil {
			n.routes = map[ruleset.Endpoint][]any{}
		}
		i = len(n.routes[route])
		n.routes[route] = append(n.routes[route], handler)
	}
	return i + 1
}
