package faultproxy

import (
	"slices"
	"strings"
)

// Match chooses commands by their arguments. cmd[0] is the command's name as the client wrote it.
// The proxy calls a Match once per command and rule, in the order in which it reads the commands,
// and never concurrently. So a Match may keep state without a lock. It must not call the proxy.
type Match func(cmd []string) bool

// Any matches every command, including the handshake (HELLO, CLIENT).
func Any() Match { return func([]string) bool { return true } }

// Command matches commands by name, case-insensitively.
func Command(names ...string) Match {
	return func(cmd []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, cmd[0]) })
	}
}

// Containing matches commands that have arg, such as a key, among their arguments.
func Containing(arg string) Match {
	return func(cmd []string) bool { return slices.Contains(cmd[1:], arg) }
}

// All matches commands that all of ms match. It asks them in order and stops at the first that does
// not match, so counters such as [Nth] belong outside.
func All(ms ...Match) Match {
	return func(cmd []string) bool {
		for _, m := range ms {
			if !m(cmd) {
				return false
			}
		}
		return true
	}
}

// Nth matches only the nth command that m matches, counted from 1.
func Nth(n int, m Match) Match {
	seen := 0
	return func(cmd []string) bool {
		if seen >= n || !m(cmd) {
			return false
		}
		seen++
		return seen == n
	}
}

// Once matches only the next command that m matches: Nth(1, m).
func Once(m Match) Match { return Nth(1, m) }
