// Package rulefile reads of a rule file what a loaded set of rules does not tell:
// what the file says for other programs, and what none of its rules uses.
package rulefile

import (
	"bytes"
	"io"
	"os"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Stdin stands for the standard input where a file is wanted.
const Stdin = "-"

// File is a rule file. Of a text that is no valid rule file it has what is there.
type File struct {
	Name string // as in messages
	Text []byte

	Settings map[string]ruleset.Source // the places of what stands at the top, such as dry_run
	Profiles []Word                    // the names of profiles; default, which needs no use, is none
	Uses     []Word                    // the profiles that rules name, of all services
	Services []Word                    // the services that rules name
}

// Word is a name in a file.
type Word struct {
	Text string
	At   ruleset.Source
}

// Texts are the words, each once, in their order.
func Texts(words []Word) []string {
	var list []string
	seen := map[string]bool{}
	for _, w := range words {
		if !seen[w.Text] {
			seen[w.Text] = true
			list = append(list, w.Text)
		}
	}
	return list
}

// Read reads a file, or stdin as [Stdin]. The error is that of reading.
func Read(path string, stdin io.Reader) (*File, error) {
	if path == Stdin {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, err
		}
		return Parse("stdin", text), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text), nil
}

// content is what is read of a file, each name with its place.
type content struct {
	Profiles yaml.Node
	Rules    []struct {
		Profile  yaml.Node
		Services []yaml.Node
	}
	Settings map[string]yaml.Node `yaml:",inline"`
}

// Parse reads a text. What is wrong with it is for [ruleset.Load] to say.
func Parse(name string, text []byte) *File {
	f := &File{Name: name, Text: text, Settings: map[string]ruleset.Source{}}
	var c content
	yaml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &c) //nolint:errcheck // the loader reports it
	for key, value := range c.Settings {
		f.Settings[key] = f.at(&value)
	}
	if c.Profiles.Kind == yaml.MappingNode {
		for i := 0; i < len(c.Profiles.Content); i += 2 {
			if name := f.word(c.Profiles.Content[i]); name.Text != "default" {
				f.Profiles = append(f.Profiles, name)
			}
		}
	}
	for _, r := range c.Rules {
		if r.Profile.Kind == yaml.ScalarNode {
			f.Uses = append(f.Uses, f.word(&r.Profile))
		}
		for _, service := range r.Services {
			f.Services = append(f.Services, f.word(&service))
		}
	}
	return f
}

func (f *File) word(n *yaml.Node) Word { return Word{n.Value, f.at(n)} }

func (f *File) at(n *yaml.Node) ruleset.Source {
	return ruleset.Source{Layer: ruleset.LayerYAML, File: f.Name, Line: n.Line, Column: n.Column}
}
