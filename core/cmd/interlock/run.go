package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

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
	synopsis string               // the arguments, as help shows them
	summary  string               // one line
	text     string               // what help says more, with examples
	args     func([]string) error // nil: run looks at them
	flags    func(*pflag.FlagSet)
	run      func(ctx context.Context, std streams, args []string) error
}

// commands is the table of commands, in the order of the help.
func commands() []*command {
	return []*command{newCheck(), newDump(), newKey(), newHash(), newWire(), newDoctor(), newLs(), newWho(), newRelease(), newSchema(), newProto(), newVersion()}
}

// noArguments is for a command that takes none.
func noArguments(args []string) error {
	if len(args) > 0 {
		return usagef("arguments %q: there are none", args)
	}
	return nil
}

// oneKey is for a command that is about one key, which is called so.
func oneKey(called string) func([]string) error {
	return func(args []string) error {
		if len(args) != 1 {
			return usagef("%d arguments: write one %s, in quotes if it has spaces", len(args), called)
		}
		return nil
	}
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
	std := streams{stdin, visible{stdout}, visible{stderr}}
	if len(args) == 0 {
		fmt.Fprint(std.err, overview())
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
	var err error
	if c.args != nil {
		err = c.args(set.Args())
	}
	if err == nil {
		err = c.run(ctx, std, set.Args())
	}
	switch {
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

// help writes the overview, or what one command does.
func help(std streams, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(std.out, overview())
		return exitFine
	}
	c, err := find(args[0])
	if err != nil {
		return fail(std, "interlock", err)
	}
	fmt.Fprint(std.out, c.help())
	return exitFine
}

// overview lists the commands.
func overview() string {
	var text strings.Builder
	text.WriteString("Interlock looks at lock rules without a server and without Redis, and at the locks in a Redis.\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(&text, "  %-8s %s\n", c.name, c.summary)
	}
	text.WriteString("\nMore about one: interlock help check\n" +
		"In a module that uses Interlock, once:\n" +
		"  go get -tool github.com/interlock-go/interlock/core/cmd/interlock\n" +
		"and then: go tool interlock check locks.yaml\n" +
		"Exit codes: 0 in order, 1 problems were found, 2 it cannot be done.\n")
	return text.String()
}

// help is the manual of a command.
func (c *command) help() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage: %s\n\n%s\n", strings.TrimSpace("interlock "+c.name+" "+c.synopsis), c.text)
	if flags := c.flagSet(); flags.HasFlags() {
		fmt.Fprintf(&text, "\nFlags:\n%s\n", strings.TrimRight(flags.FlagUsages(), "\n"))
	}
	return text.String()
}

// visible passes visible characters, new lines and tabs on to a terminal. It writes every other character as JSON
// does, such as \u001b: a key, a field or a file cannot move the cursor, change colours or turn the direction of
// text, and a string of JSON stays the same string.
type visible struct{ io.Writer }

// Write writes p, which has to end with a whole character.
func (v visible) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			text = fmt.Appendf(text, `\x%02x`, rest[0])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			text = append(text, rest[:size]...)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				text = fmt.Appendf(text, `\u%04x`, unit)
			}
		}
		rest = rest[size:]
	}
	if _, err := v.Writer.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
