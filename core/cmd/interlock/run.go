package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	exitProblems = 1 // the command found problems
	exitCannot   = 2 // the command could not do its work
)

// commandLine is the program: its commands, in the order of the help.
type commandLine []*command

// command is one command of the program.
type command struct {
	name     string
	synopsis string               // the arguments in the help
	summary  string               // its line in the overview
	text     string               // the help, with examples
	args     func([]string) error // checks the arguments; nil: run checks them
	flags    func(*pflag.FlagSet)
	run      func(ctx context.Context, std streams, args []string) error
}

// noArguments checks the arguments of a command that takes none.
func noArguments(args []string) error {
	if len(args) > 0 {
		return usagef("arguments %q: the command takes none", args)
	}
	return nil
}

// oneKey returns a check for the arguments of a command that takes one key. Messages call the key noun.
func oneKey(noun string) func([]string) error {
	return func(args []string) error {
		if len(args) != 1 {
			return usagef("%d arguments: write one %s, in quotes if it has spaces", len(args), noun)
		}
		return nil
	}
}

// streams are the standard streams of one run.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// errProblems makes a command exit with [exitProblems]. The command has already written the
// problems.
var errProblems = errors.New("problems were found")

// usageError reports wrong usage of the program.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// run runs the command that args name and returns the exit code.
func (l commandLine) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	std := streams{stdin, visibleWriter{stdout}, visibleWriter{stderr}}
	if len(args) == 0 {
		fmt.Fprint(std.err, l.overview())
		return exitCannot
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "--help", "-h":
		return l.help(std, rest)
	case "--version":
		name = "version"
	}
	c, err := l.find(name)
	if err != nil {
		return fail(std, "interlock", err)
	}
	return c.execute(ctx, std, rest)
}

// find returns the command with a name.
func (l commandLine) find(name string) (*command, error) {
	var names []string
	for _, c := range l {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	if near := failpolicy.Nearest(name, names); near != "" {
		return nil, usagef("unknown command %q: did you mean %q?", name, near)
	}
	return nil, usagef("unknown command %q: the commands are %s", name, strings.Join(names, ", "))
}

// execute parses the flags, runs the command and returns the exit code.
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

// isInvalid reports whether err concerns the rules, not the usage of the program.
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

// flagError returns an error with the flag to write instead of an unknown one.
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
		return usagef("%v: the command has no flags", err)
	}
	return usagef("%v: the flags are --%s", err, strings.Join(names, ", --"))
}

// fail writes the error of a run and returns the exit code.
func fail(std streams, called string, err error) int {
	fmt.Fprintf(std.err, "%s: %v\n", called, err)
	if _, usage := errors.AsType[*usageError](err); usage {
		fmt.Fprintf(std.err, "Run %q.\n", strings.Replace(called, "interlock", "interlock help", 1))
	}
	return exitCannot
}

// help writes the overview or the manual of one command.
func (l commandLine) help(std streams, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(std.out, l.overview())
		return exitFine
	}
	c, err := l.find(args[0])
	if err != nil {
		return fail(std, "interlock", err)
	}
	fmt.Fprint(std.out, c.help())
	return exitFine
}

// overview lists the commands.
func (l commandLine) overview() string {
	var text strings.Builder
	text.WriteString("Interlock checks lock rules without a server and without Redis, and shows the locks in a Redis.\n\nCommands:\n")
	for _, c := range l {
		fmt.Fprintf(&text, "  %-8s %s\n", c.name, c.summary)
	}
	text.WriteString("\nThe manual of a command: interlock help check\n" +
		"In a module that uses Interlock, once:\n" +
		"  go mod edit -tool github.com/interlock-go/interlock/core/cmd/interlock\n  go mod tidy\n" +
		"and then: go tool interlock check locks.yaml\n" +
		"Exit codes: 0 no problems, 1 problems were found, 2 the command could not run.\n")
	return text.String()
}

// help returns the manual of a command.
func (c *command) help() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage: %s\n\n%s\n", strings.TrimSpace("interlock "+c.name+" "+c.synopsis), c.text)
	if flags := c.flagSet(); flags.HasFlags() {
		fmt.Fprintf(&text, "\nFlags:\n%s\n", strings.TrimRight(flags.FlagUsages(), "\n"))
	}
	return text.String()
}

// countOf returns a number with a noun, such as "1 rule" or "2 rules".
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneOf returns an error for a value of a flag that is not one of the known ones.
func oneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usagef("--%s %s: write %s", flag, value, strings.Join(known, ", "))
}

// visibleWriter passes visible characters, new lines and tabs on to a terminal. It writes every other character as
// in JSON, such as \u001b. So a key, a field or a file cannot move the cursor, change colours or change the
// direction of text, and a JSON string stays the same string.
type visibleWriter struct{ io.Writer }

// Write writes p, which must end with a whole character.
func (v visibleWriter) Write(p []byte) (int, error) {
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
