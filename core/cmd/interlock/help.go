package main

import (
	"fmt"
	"strings"
)

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
