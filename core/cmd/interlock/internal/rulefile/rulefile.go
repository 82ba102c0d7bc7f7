// Package rulefile reads the parts of a rule file that a loaded set does not contain: the names
// of other programs, and the profiles, whether rules use them or not.
//
// It depends on the form of a rule file, but reports no mistakes in it: package ruleset does. The commands
// call it, and package inspect reads its result.
package rulefile

import (
	"bytes"
	"io"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Stdin is the path that stands for the standard input.
const Stdin = "-"

// File is a rule file. If the text is not a valid rule file, it contains the parts that could be
// read.
type File struct {
	Name string // the name in messages
	Text []byte

	Profiles map[string]ruleset.Source // the profiles with their places, except default, which every rule uses
	Uses     []string                  // the profiles that rules name, of all services

	Services   []string       // the services that rules name, each once
	ServicesAt ruleset.Source // the place of the first one
}

// Read reads a file, or stdin for [Stdin]. If the file is too large for the loader, Read stops one byte
// after the limit. It returns only read errors.
func Read(path string, stdin io.Reader) (*File, error) {
	name := "stdin"
	if path != Stdin {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		name, stdin = path, file
	}
	text, err := io.ReadAll(io.LimitReader(stdin, ruleset.MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	return Parse(name, text), nil
}

// content holds the parts of a file that are read, each name with its place.
type content struct {
	Profiles yaml.Node
	Rules    []struct {
		Profile  yaml.Node
		Services []yaml.Node
	}
}

// Parse reads a text. It reports no mistake, because [ruleset.Load] does. It does not look for duplicate
// names, because the parser needs hours for that in a large file.
func Parse(name string, text []byte) *File {
	f := &File{Name: name, Text: text, Profiles: map[string]ruleset.Source{}}
	var c content
	yaml.Load(bytes.TrimPrefix(text, []byte("\ufeff")), &c, yaml.WithUniqueKeys(false)) //nolint:errcheck // see above
	if c.Profiles.Kind == yaml.MappingNode {
		for i := 0; i < len(c.Profiles.Content); i += 2 {
			if key := c.Profiles.Content[i]; key.Value != "default" {
				f.Profiles[key.Value] = f.at(key)
			}
		}
	}
	for _, r := range c.Rules {
		if r.Profile.Kind == yaml.ScalarNode {
			f.Uses = append(f.Uses, r.Profile.Value)
		}
		for _, service := range r.Services {
			if f.Services == nil {
				f.ServicesAt = f.at(&service)
			}
			if !slices.Contains(f.Services, service.Value) {
				f.Services = append(f.Services, service.Value)
			}
		}
	}
	return f
}

func (f *File) at(n *yaml.Node) ruleset.Source {
	return ruleset.Source{Layer: ruleset.LayerYAML, File: f.Name, Line: n.Line, Column: n.Column}
}
