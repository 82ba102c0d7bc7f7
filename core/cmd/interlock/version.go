package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

func newVersion() *command {
	return &command{
		name:    "version",
		summary: "which Interlock this is",
		text:    "Prints the version of the Interlock module, and Go's.",
		run:     runVersion,
	}
}

func runVersion(_ context.Context, std streams, args []string) error {
	if len(args) > 0 {
		return usagef("arguments %q: there are none", args)
	}
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	fmt.Fprintf(std.out, "interlock %s %s\n", version, runtime.Version())
	return nil
}
