package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/inspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
)

// program holds the flags that describe the program with the rules, and the content of the files
// that they name.
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
	set.StringVar(&p.routesFile, "routes", "", "`file` of the program's routes, by WriteRoutes of ginlock or httplock")
}

func (p *program) serviceFlag(set *pflag.FlagSet) {
	set.StringVar(&p.service, "service", "", "`name` of the program, for rules with a list of services")
}

// open reads the files that the flags name and returns the name of the rule file.
func (p *program) open(args []string) (file string, err error) {
	if file, err = p.ruleFile(args); err != nil {
		return "", err
	}
	if p.descriptors != "" {
		if p.image, err = image.Load(p.descriptors); err != nil {
			return "", fmt.Errorf("--descriptors: %w", err)
		}
	}
	if p.routesFile != "" {
		if p.routes, err = routes.Load(p.routesFile); err != nil {
			return "", fmt.Errorf("--routes: %w", err)
		}
	}
	return file, nil
}

// set loads a rule file. If file is nil, the set is empty and only .proto files have rules.
func (p *program) set(file *rulefile.File) (*ruleset.Set, error) {
	if file == nil {
		return ruleset.NewSet(nil)
	}
	var opts []ruleset.Option
	if p.service != "" {
		opts = append(opts, ruleset.WithService(p.service))
	}
	set, err := ruleset.Load(file.Name, file.Text, opts...)
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		adviseService(invalid.Problems, file)
	}
	return set, err
}

// rules opens the files that the flags name and loads the rules, for a command that only shows them. It
// warns of a misspelt service.
func (p *program) rules(std streams, args []string) (*ruleset.Set, error) {
	path, err := p.open(args)
	if err != nil {
		return nil, err
	}
	file, err := readRules(path, std.in)
	if err != nil {
		return nil, err
	}
	if f, found := inspect.Service(file, p.service); found && f.Severity == report.Warning {
		fmt.Fprintln(std.err, report.Line(f))
	}
	return p.set(file)
}

// readRules reads a rule file. It returns nil for an empty path.
func readRules(path string, stdin io.Reader) (*rulefile.File, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file was given
	}
	return rulefile.Read(path, stdin)
}

// adviseService replaces the loader's advice, which is for Go programs, with advice to use the
// flag of this command.
func adviseService(problems []*ruleset.Problem, file *rulefile.File) {
	for _, p := range problems {
		if errors.Is(p, ruleset.ErrNoService) && len(file.Services) > 0 {
			p.Message = "the rules are for certain programs only: write --service " + strings.Join(file.Services, " or --service ")
		}
	}
}

// ruleFile returns the one argument of a command. It may be missing if there are descriptors.
func (p *program) ruleFile(args []string) (string, error) {
	switch {
	case len(args) == 0 && p.descriptors != "":
		return "", nil
	case len(args) == 0:
		return "", usagef("no rule file: write its name, such as locks.yaml, - for the standard input, or --descriptors for the rules of .proto files")
	case len(args) > 1:
		return "", usagef("%q is one file too many: call the command once for each file", args[1])
	default:
		return args[0], nil
	}
}
