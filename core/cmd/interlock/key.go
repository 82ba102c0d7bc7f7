package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/simulate"
	"github.com/interlock-go/interlock/core/ruleset"
)

// key is the command of that name.
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
		summary:  "the Redis keys that a request would lock",
		text: `Shows which rules concern a request, what their keys read, and the Redis keys; or why
there is none. REQUEST is a method and a path, or a full gRPC method. Exit code 1 if
no rule concerns the request, or one yields no key; 0 if none is wanted (none: true).

What only the server knows has to be given: the variables that it registers,
client_ip or peer (--var), the prefix of its client (--prefix), below a wildcard its
routes (--routes). A body is JSON if it looks like that, else a form, unless there is
a Content-Type. A key over req needs --descriptors. Keys of functions are made of a
Go argument, and cannot be shown. - reads the rules from the standard input.

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
	set.BoolVar(&k.hash, "hash", false, "also show the keys as traces and logs do")
	k.imageFlag(set)
	k.routesFlag(set)
	k.serviceFlag(set)
}

func (k *key) run(ctx context.Context, std streams, args []string) error {
	if len(args) == 0 {
		return usagef("no request: write a rule file and a request in quotes, such as locks.yaml 'POST /orders/42/pay'")
	}
	last := len(args) - 1
	path, err := k.ruleFile(args[:last])
	if err != nil {
		return err
	}
	answers, err := k.ask(ctx, std, path, args[last])
	if unmatched, ok := errors.AsType[*simulate.NoMatchError](err); ok {
		fmt.Fprintln(std.out, unmatched)
		if unmatched.OnPurpose {
			return nil
		}
		return errProblems
	}
	if err != nil {
		return k.explain(err, strings.HasPrefix(args[last], "/"))
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
		if a.Err != nil {
			return errProblems
		}
	}
	return nil
}

// ask finds out what the rules do with the request.
func (k *key) ask(ctx context.Context, std streams, path, request string) ([]simulate.Answer, error) {
	if err := k.load(); err != nil {
		return nil, err
	}
	if path == rulefile.Stdin && k.data == "@-" {
		return nil, usagef("the rule file and the body both from the standard input: write one of them to a file")
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
	set, err := k.readAndSet(std, path)
	if err != nil {
		return nil, err
	}
	p := &simulate.Program{Set: set, Routes: k.routes, Image: k.image, Variables: variables}
	method, target, isHTTP := strings.Cut(strings.TrimSpace(request), " ")
	switch {
	case isHTTP:
		return p.HTTP(ctx, method, strings.TrimSpace(target), header, body)
	case strings.Count(request, "/") == 2 && strings.HasPrefix(request, "/"):
		return p.GRPC(request, metadata(header), body)
	case len(set.Lookup(ruleset.Func(request))) > 0:
		return nil, p.Function(request)
	default:
		return nil, usagef("%q is no request: write a method and a path such as 'POST /orders/42/pay', or a full gRPC method such as /shop.v1.Orders/Pay", request)
	}
}

// explain says what may be missing where rules do not compile.
func (k *key) explain(err error, isGRPC bool) error {
	if !isInvalid(err) {
		return err
	}
	hints := []string{"a variable that the program registers needs --var name=value"}
	switch {
	case isGRPC && k.image == nil:
		hints = append(hints, "req needs --descriptors")
	case !isGRPC && k.routes == nil:
		hints = append(hints, "path parameters below a wildcard need --routes")
	}
	return fmt.Errorf("%w\n(%s)", err, strings.Join(hints, "; "))
}

// write shows what one rule does.
func (k *key) write(w io.Writer, a *simulate.Answer) error {
	r := a.Rule
	fmt.Fprintf(w, "rule %q of %s (%s)\n", r.Name, r.Endpoint, r.Source("endpoint"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(table, "  %s\t%s\n", name, value) }
	for _, v := range a.Values {
		row(v.Name, v.Text)
	}
	switch {
	case a.Err != nil:
		row("no key", a.Reason())
	case !a.Applies:
		row("no lock", "the condition is not met: "+a.Condition)
	case a.Condition != "":
		row("when", a.Condition)
	}
	for _, name := range a.Keys {
		row("key", k.prefix+name)
		if k.hash {
			row("hash", core.KeyHash(k.prefix+name))
		}
	}
	switch {
	case len(a.Keys) == 0:
	case r.Disabled:
		row("disabled", "the handler runs without the lock")
	case r.DryRun:
		row("dry run", "the handler runs without the lock; what is taken ends in "+aspect.ShadowSuffix)
	}
	return table.Flush()
}

// pairs reads the values of --var.
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

// headers reads the values of --header.
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

// metadata are headers as gRPC has them.
func metadata(h http.Header) map[string][]string {
	list := map[string][]string{}
	for name, values := range h {
		list[strings.ToLower(name)] = values
	}
	return list
}

// data reads the value of --data.
func data(stdin io.Reader, value string) ([]byte, error) {
	path, isFile := strings.CutPrefix(value, "@")
	switch {
	case value == "@-":
		return io.ReadAll(stdin)
	case isFile:
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		return content, nil
	default:
		return []byte(value), nil
	}
}
