package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// The exit codes.
const (
	exitFine     = 0
	exitProblems = 1 // what was asked about is not in order
	exitCannot   = 2 // what was asked cannot be done
)

// command is one command of the program.
type command struct {
	name     string
	synopsis string // the arguments, as help shows them
	summary  string // one line
	text     string // what help says more, with examples
	flags    func(*pflag.FlagSet)
	run      func(ctx context.Context, std streams, args []string) error
}

// commands is the table of commands, in the order of the help.
func commands() []*command {
	return []*command{newCheck(), newDump(), newKey(), newHash(), newWire(), newLs(), newWho(), newWatch(), newRelease(), newSchema(), newVersion()}
}

// streams are the standard streams of one run.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// errProblems ends a command with [exitProblems]. The problems were written.
var errProblems = errors.New("problems were found")

// usageError says how the program was called wrongly.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// run is the whole program, but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	std := streams{input{ctx, stdin}, stdout, stderr}
	if len(args) == 0 {
		fmt.Fprint(stderr, overview())
		return exitCannot
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "--help", "-h":
		return help(std, rest)
	case "--version":
		name = "version"
	}
	c, err := find(name)
	if err != nil {
		return fail(std, "interlock", err)
	}
	return c.execute(ctx, std, rest)
}

// find is the command of a name.
func find(name string) (*command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	if near := failpolicy.Nearest(name, names); near != "" {
		return nil, usagef("there is no command %q: did you mean %q?", name, near)
	}
	return nil, usagef("there is no command %q: there are %s", name, strings.Join(names, ", "))
}

func (c *command) execute(ctx context.Context, std streams, args []string) int {
	set := c.flagSet()
	switch err := set.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(std.out, c.help())
		return exitFine
	case err != nil:
		return fail(std, "interlock "+c.name, flagError(set, err))
	}
	switch err := c.run(ctx, std, set.Args()); {
	case err == nil:
		return exitFine
	case errors.Is(err, errProblems):
		return exitProblems
	case isInvalid(err):
		fmt.Fprintln(std.err, err)
		return exitProblems
	default:
		return fail(std, "interlock "+c.name, err)
	}
}

// isInvalid reports whether the rules are at fault, not the call.
func isInvalid(err error) bool {
	_, ok := errors.AsType[*ruleset.InvalidError](err)
	return ok
}

func (c *command) flagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.SortFlags = false
	if c.flags != nil {
		c.flags(set)
	}
	return set
}

// flagError says what to write instead of a flag that does not exist.
func flagError(set *pflag.FlagSet, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef("%v", err)
	}
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := failpolicy.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return usagef("%v: did you mean --%s?", err, near)
	}
	if len(names) == 0 {
		return usagef("%v: there are no flags", err)
	}
	return usagef("%v: there are --%s", err, strings.Join(names, ", --"))
}

// fail writes why the program could not do what it was asked.
func fail(std streams, who string, err error) int {
	fmt.Fprintf(std.err, "%s: %v\n", who, err)
	if _, usage := errors.AsType[*usageError](err); usage {
		fmt.Fprintf(std.err, "Run %q.\n", strings.Replace(who, "interlock", "interlock help", 1))
	}
	return exitCannot
}
