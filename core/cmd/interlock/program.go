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

// set loads the rule file. Without one there are only the options of .proto files.
func (p *program) set(path string) (*ruleset.Set, error) {
	var opts []ruleset.Option
	if p.service != "" {
		opts = append(opts, ruleset.WithService(p.service))
	}
	if path == "" {
		return ruleset.NewSet(nil, opts...)
	}
	return ruleset.LoadFile(path, opts...)
}

// ruleFile is the one argument of a command; none if there are descriptors.
func (p *program) ruleFile(args []string) (string, error) {
	switch {
	case len(args) == 0 && p.descriptors != "":
		return "", nil
	case len(args) == 0:
		return "", usagef("no rule file: write its name, such as locks.yaml, or --descriptors for the rules of .proto files")
	case len(args) > 1:
		return "", usagef("%q is one file too many: call it once for each", args[1])
	default:
		return args[0], nil
	}
}
