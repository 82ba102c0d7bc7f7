package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/pflag"
)

// dump is the command dump.
type dump struct {
	program

	format string
}

func newDump() *command {
	d := &dump{}
	return &command{
		name:     "dump",
		synopsis: "[LOCKS.yaml] [flags]",
		summary:  "show the rules in force, with the source of every value",
		text: `Shows the rules in force, with defaults, profiles and, with --descriptors, the options of
.proto files. Every value has the place from which it comes. Rules that are written in Go are
not known.

Examples:
  interlock dump locks.yaml
  interlock dump locks.yaml --descriptors image.binpb --format json
  interlock dump --descriptors image.binpb`,
		flags: d.flags,
		run:   d.run,
	}
}

func (d *dump) flags(set *pflag.FlagSet) {
	d.imageFlag(set)
	d.serviceFlag(set)
	set.StringVar(&d.format, "format", "text", "`format` of the output: text or json")
}

func (d *dump) run(_ context.Context, std streams, args []string) error {
	if err := oneOf("format", d.format, []string{"text", "json"}); err != nil {
		return err
	}
	set, err := d.rules(std, args)
	if err != nil {
		return err
	}
	shown := set.Dump()
	if d.image != nil {
		if shown.Rules, err = d.image.All(set); err != nil {
			return err
		}
	}
	if d.format == "json" {
		enc := json.NewEncoder(std.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(shown)
	}
	return shown.WriteText(std.out)
}
