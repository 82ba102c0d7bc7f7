// Package rulefile reads of a rule file what a loaded set of rules does not tell:
// what the file says for other programs, and what none of its rules uses.
package rulefile

import (
	"bytes"
	"io"
	"os"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Stdin stands for the standard input where a file is wanted.
const Stdin = "-"

// File is a rule file. Of a text that is no valid rule file it has what is there.
type File struct {
	Name string // as in messages
	Text []byte

	Profiles map[string]ruleset.Source // the profiles with their places; default, which needs no use, is not among them
	Uses     []string                  // the profiles that rules name, of all services

	Services   []string       // the services that rules name, each once
	ServicesAt ruleset.Source // the first of them
}

// Read reads a file, or stdin as [Stdin]: of one that is too large for the loader as much as
// it refuses. The error is that of reading.
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

// content is what is read of a file, each name with its place.
type content struct {
	Profiles yaml.Node
	Rules    []struct {
		Profile  yaml.Node
		Services []yaml.Node
	}
}

// Parse reads a text. What is wrong with it is for [ruleset.Load] to say, names that come
// twice included: looking for those takes the parser hours in a large file.
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
