// Command audit checks the module in the current folder without compiling it:
//
//	audit platforms GOOS/GOARCH…    the packages and their tests compile for each platform
//	audit api OLD CHANGELOG         the changelog names each incompatible change since the module in folder OLD
//
// It type-checks sources and omits the function bodies of other modules. That takes seconds where go build takes
// minutes. Cgo is off.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 2 && args[0] == "platforms":
		return checkPlatforms(args[1:])
	case len(args) == 3 && args[0] == "api":
		return checkAPI(args[1], args[2])
	}
	return errors.New("usage: audit platforms GOOS/GOARCH… | audit api OLD CHANGELOG")
}

// checkPlatforms returns the errors of each platform.
func checkPlatforms(platforms []string) error {
	var failed []error
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		loaded, err := load(".", true, "GOOS="+goos, "GOARCH="+goarch)
		fmt.Printf("%s: %d packages\n", platform, len(loaded))
		if err != nil {
			failed = append(failed, fmt.Errorf("%s:\n%w", platform, err))
		}
	}
	return errors.Join(failed...)
}

// checkAPI prints the incompatible changes between the modules in old and in the current folder. It returns an error
// for each change that the section Unreleased of the changelog does not name.
func checkAPI(old, changelog string) error {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	before, err := loadModule(old)
	if err != nil {
		return err
	}
	after, err := loadModule(".")
	if err != nil {
		return err
	}
	section := unreleased(string(text))
	var missing []error
	for _, change := range apidiff.ModuleChanges(before, after).Changes {
		if change.Compatible {
			continue
		}
		fmt.Println(change.Message)
		if !names(section, change.Message) {
			missing = append(missing, fmt.Errorf("%s: Unreleased does not name this change: %s", changelog, change.Message))
		}
	}
	return errors.Join(missing...)
}

// unreleased returns the section Unreleased of a changelog without its heading.
func unreleased(changelog string) string {
	_, rest, _ := strings.Cut("\n"+changelog, "\n## Unreleased\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// names reports whether the code in a section, which is between backticks, contains the changed identifier as a word. For
// "./core.(*Client).Locks: removed" this is Locks, for "package ./core/fence: removed" fence.
func names(section, message string) bool {
	changed, _, _ := strings.Cut(message, ": ")
	changed, _, _ = strings.Cut(changed, ", method set of ") // a method of an embedded type
	identifiers := word.FindAllString(changed, -1)
	name := identifiers[len(identifiers)-1]
	return slices.Contains(word.FindAllString(strings.Join(code.FindAllString(section, -1), " "), -1), name)
}

var (
	code = regexp.MustCompile("`[^`\n]+`")
	word = regexp.MustCompile(`\w+`)
)

// loadModule returns the public packages of the module in a folder.
func loadModule(dir string) (*apidiff.Module, error) {
	loaded, err := load(dir, false)
	if err != nil {
		return nil, err
	}
	module := &apidiff.Module{Path: loaded[0].Module.Path}
	for _, p := range loaded {
		if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
			module.Packages = append(module.Packages, p.Types)
		}
	}
	return module, nil
}

// load type-checks the module in a folder.
func load(dir string, tests bool, environment ...string) ([]*packages.Package, error) {
	foreign, err := foreignFolders()
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule,
		Dir:   dir,
		Tests: tests,
		Env:   slices.Concat(os.Environ(), []string{"CGO_ENABLED=0"}, environment),
		ParseFile: func(files *token.FileSet, name string, content []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
			if file != nil && slices.ContainsFunc(foreign, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
				removeBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, p := range loaded {
		for _, problem := range p.Errors {
			failed = append(failed, problem)
		}
	}
	return loaded, errors.Join(failed...)
}

// foreignFolders returns the folders of the standard library and of other modules.
func foreignFolders() ([]string, error) {
	output, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(output)), nil
}

func removeBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
}
