package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/ruleset"
)

// program is what several commands are told about the program that uses the rules.
type program struct {
	service     string
	descriptors string
	routesFile  string

	image  *image.Image
	routes *routes.Table
}

func (p *program) imageFlag(set *pflag.FlagSet) {
	set.StringVar(&p.descriptors, "descriptors", "", "`file` of compiled .proto files, by buf build -o or\nprotoc --include_imports --include_source_info -o")
}

func (p *program) routesFlag(set *pflag.FlagSet) {
	set.StringVar(&p.routesFile, "routes", "", "`file` of the program's routes, by WriteRoutes of ginlock")
}

func (p *program) serviceFlag(set *pflag.FlagSet) {
	set.StringVar(&p.service, "service", "", "`name` of the program, for rules with a list of services")
}

// load reads the files that were given.
func (p *program) load() error {
	var err error
	if p.descriptors != "" {
		if p.image, err = image.Load(p.descriptors); err != nil {
			return fmt.Errorf("--descriptors: %w", err)
		}
	}
	if p.routesFile != "" {
		if p.routes, err = routes.Load(p.routesFile); err != nil {
			return fmt.Errorf("--routes: %w", err)
		}
	}
	return nil
}

// options are those for loading a rule file.
func (p *program) options() []ruleset.Option {
	if p.service == "" {
		return nil
	}
	return []ruleset.Option{ruleset.WithService(p.service)}
}

// onlyRuleFile is the one argument of a command.
func onlyRuleFile(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", usagef("no rule file: write its name, such as locks.yaml")
	case len(args) > 1:
		return "", usagef("%q is one file too many: call it once for each", args[1])
	default:
		return args[0], nil
	}
}
