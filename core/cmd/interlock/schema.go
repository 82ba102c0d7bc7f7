package main

import (
	"context"

	"github.com/interlock-go/interlock/core/ruleset"
)

func newSchema() *command {
	return &command{
		name:    "schema",
		summary: "the JSON Schema of rule files, for editors",
		text: `Prints the JSON Schema of rule files. Editors with the YAML language server find it by
the first line of a rule file:

  # yaml-language-server: $schema=locks.schema.json

Example:
  interlock schema > locks.schema.json`,
		run: runSchema,
	}
}

func runSchema(_ context.Context, std streams, args []string) error {
	if len(args) > 0 {
		return usagef("arguments %q: there are none", args)
	}
	_, err := std.out.Write(ruleset.Schema())
	return err
}
