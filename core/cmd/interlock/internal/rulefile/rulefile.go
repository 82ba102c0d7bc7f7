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

	Profiles []Word // the names of profiles; default, which needs no use, is none
	Uses     []Word // the profiles that rules name, of all services
	Services []Word // the services that rules name
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
	f := &File{Name: name, Text: text}
	var c content
	yaml.Load(bytes.TrimPrefix(text, []byte("\ufeff")), &c, yaml.WithUniqueKeys(false)) //nolint:errcheck // see above
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

func (f *File) word(n *yaml.Node) Word {
	return Word{n.Value, ruleset.Source{Layer: ruleset.LayerYAML, File: f.Name, Line: n.Line, Column: n.Column}}
}
