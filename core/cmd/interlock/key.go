package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/input"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// key is the command key.
type key struct {
	program

	headers   []string
	data      string
	variables []string
	prefix    string
	hash      bool
}

func newKey() *command {
	k := &key{}
	return &command{
		name:     "key",
		synopsis: "[LOCKS.yaml] REQUEST [flags]",
		summary:  "show the Redis keys that a request would lock",
		text: `Shows the rules that match a request, the values that their keys read, and the Redis keys,
or the reason why a rule yields no key. REQUEST is a method and a path, a full gRPC method,
or the name of a function, alone or as 'func: close-day'. Exit code 1 if no rule matches
the request, or if a rule yields no key; 0 if the rule says none: true.

Facts that only the server knows need flags: the variables that it registers, client_ip and
peer (--var), the prefix of its client (--prefix), and its routes for rules with wildcards
(--routes). A body without a Content-Type is JSON if it looks like JSON, and otherwise a
form. A key over req needs --descriptors. The argument of a function is a Go value: keys
that read it cannot be shown. - reads the rules from the standard input.

Examples:
  interlock key locks.yaml 'POST /orders/42/pay?x=1' -H 'X-Id: 7' -d '{"sku":"a"}'
  interlock key locks.yaml 'POST /cart' -H 'Cookie: session=1' -d @body.json --var user=ann
  interlock key locks.yaml /shop.v1.Orders/Pay -d '{"order_id": 1}' -H 'tenant: a' \
    --descriptors image.binpb --prefix shop:`,
		flags: k.flags,
		run:   k.run,
	}
}

func (k *key) flags(set *pflag.FlagSet) {
	set.StringArrayVarP(&k.headers, "header", "H", nil, "a header or metadata value, as '`name: value`'")
	set.StringVarP(&k.data, "data", "d", "", "the `body`; @file reads it from a file, @- from the standard input")
	set.StringArrayVar(&k.variables, "var", nil, "the value of a variable, as `name=value`")
	set.StringVar(&k.prefix, "prefix", "", "the `prefix` of the lock client, such as shop:")
	set.BoolVar(&k.hash, "hash", false, "also show the hashed keys of traces and logs")
	k.imageFlag(set)
	k.routesFlag(set)
	k.serviceFlag(set)
}

func (k *key) run(ctx context.Context, std streams, args []string) error {
	if len(args) == 0 || len(args) == 1 && strings.HasSuffix(args[0], ".yaml") {
		return usagef("no request: write a rule file and a request in quotes, such as locks.yaml 'POST /orders/42/pay'")
	}
	files, request := splitRequest(args)
	answers, err := k.ask(ctx, std, files, request)
	if unmatched, ok := errors.AsType[*noMatchError](err); ok {
		fmt.Fprintln(std.out, unmatched)
		if unmatched.onPurpose {
			return nil
		}
		return errProblems
	}
	if err != nil {
		return err
	}
	for i := range answers {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if err := k.write(std.out, &answers[i]); err != nil {
			return err
		}
	}
	for _, a := range answers {
		if a.err != nil {
			return errProblems
		}
	}
	return nil
}

// splitRequest splits the request from the files. The request is the last argument or, if the shell split it,
// the last two: a method, which has only letters, and a path.
func splitRequest(args []string) (files []string, request string) {
	last := len(args) - 1
	if last > 0 && strings.HasPrefix(args[last], "/") && !strings.ContainsFunc(args[last-1], notLetter) {
		return args[:last-1], args[last-1] + " " + args[last]
	}
	return args[:last], strings.TrimSpace(args[last])
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// ask evaluates the rules for the request.
func (k *key) ask(ctx context.Context, std streams, file []string, request string) ([]answer, error) {
	if k.data == "@-" && slices.Contains(file, rulefile.Stdin) {
		return nil, usagef("the rule file and the body cannot both come from the standard input: write one of them to a file")
	}
	variables, err := pairs(k.variables)
	if err != nil {
		return nil, err
	}
	header, err := headers(k.headers)
	if err != nil {
		return nil, err
	}
	body, err := data(std.in, k.data)
	if err != nil {
		return nil, err
	}
	set, err := k.rules(std, file)
	if err != nil {
		return nil, err
	}
	p := &simulator{set: set, routes: k.routes, image: k.image, variables: variables}
	name, isFunction := strings.CutPrefix(request, "func:")
	name = strings.TrimSpace(name)
	method, target, isHTTP := strings.Cut(request, " ")
	switch {
	case isFunction && len(set.Lookup(ruleset.Func(name))) == 0:
		return nil, usagef("%q is not a function with a rule: %s", name, requestAdvice(set, name))
	case isFunction:
		return p.function(name)
	case isHTTP && method == strings.ToUpper(method):
		answers, err := p.http(ctx, method, strings.TrimSpace(target), header, body)
		return answers, explain(err, k.routes == nil, "; path parameters below a wildcard need --routes")
	case strings.Count(request, "/") == 2 && strings.HasPrefix(request, "/"):
		answers, err := p.grpc(ctx, request, header, body)
		return answers, explain(err, k.image == nil, "; req needs --descriptors")
	case len(set.Lookup(ruleset.Func(request))) > 0:
		return p.function(request)
	case isHTTP:
		return nil, usagef("%q is not a method: methods are in capitals, such as 'POST /orders/42/pay'", method)
	default:
		return nil, usagef("%q is not a request: %s", request, requestAdvice(set, request))
	}
}

// requestAdvice returns advice for a text that is not a request.
func requestAdvice(set *ruleset.Set, request string) string {
	var functions []string
	for _, r := range set.Rules() {
		if r.Endpoint.Transport == ruleset.TransportFunc {
			functions = append(functions, r.Endpoint.Path)
		}
	}
	if near := failpolicy.Nearest(request, functions); near != "" {
		return fmt.Sprintf("did you mean 'func: %s'?", strings.ReplaceAll(near, "'", `'\''`))
	}
	return "write a method and a path such as 'POST /orders/42/pay', a full gRPC method such as /shop.v1.Orders/Pay, or the name of a function with a rule"
}

// explain adds to the error of rules that do not compile which flags may be missing.
func explain(err error, unknown bool, hint string) error {
	switch {
	case !isInvalid(err):
		return err
	case !unknown:
		hint = ""
	}
	return fmt.Errorf("%w\n(a variable that the program registers needs --var name=value%s)", err, hint)
}

// write shows the effect of one rule.
func (k *key) write(w io.Writer, a *answer) error {
	r := a.rule
	fmt.Fprintf(w, "rule %q of %s (%s)\n", r.Name, r.Endpoint, r.Source("endpoint"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if strings.ContainsAny(value, "\n\t") { // they would begin another row or column
			value = strconv.Quote(value)
		}
		fmt.Fprintf(table, "  %s\t%s\n", name, value)
	}
	for _, v := range a.values {
		row(v.name, v.text)
	}
	switch {
	case a.err != nil:
		row("no key", a.reason())
	case !a.applies:
		row("no lock", "the condition is false: "+r.When)
	case r.When != "":
		row("when", r.When)
	}
	for _, name := range a.keys {
		row("key", k.prefix+name)
		if k.hash {
			row("hash", core.KeyHash(k.prefix+name))
		}
	}
	switch {
	case len(a.keys) == 0:
	case r.Disabled:
		row("disabled", "the handler runs without the lock")
	case r.DryRun:
		row("dry run", "the handler runs without the lock; the key of its shadow ends in "+aspect.ShadowSuffix)
	}
	return table.Flush()
}

// pairs parses the values of --var.
func pairs(values []string) (map[string]string, error) {
	list := map[string]string{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usagef("--var %s: write a name and a value, such as user=ann", v)
		}
		list[name] = value
	}
	return list, nil
}

// headers parses the values of --header.
func headers(values []string) (http.Header, error) {
	list := http.Header{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, usagef("--header %s: write a name and a value, such as 'X-Id: 7'", v)
		}
		list.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return list, nil
}

// data reads the value of --data.
func data(stdin io.Reader, value string) ([]byte, error) {
	path, isFile := strings.CutPrefix(value, "@")
	content, err := []byte(value), error(nil)
	switch {
	case value == "@-":
		content, err = input.All(stdin, input.Document)
	case isFile:
		content, err = input.File(path, input.Document)
	}
	if err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	return content, nil
}
