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

// Parse reads a text. What is wrong with it is for [ruleset.Load] to say.
func Parse(name string, text []byte) *File {
	f := &File{Name: name, Text: text, Settings: map[string]ruleset.Source{}}
	var document yaml.Node
	if yaml.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &document) != nil || len(document.Content) == 0 {
		return f
	}
	for key, value := range entries(document.Content[0]) {
		switch key.Value {
		case "profiles":
			f.readProfiles(value)
		case "rules":
			f.readRules(value)
		default:
			f.Settings[key.Value] = f.at(value)
		}
	}
	return f
}

func (f *File) readProfiles(profiles *yaml.Node) {
	for key := range entries(profiles) {
		if key.Value != "default" {
			f.Profiles = append(f.Profiles, f.word(key))
		}
	}
}

func (f *File) readRules(rules *yaml.Node) {
	for _, rule := range rules.Content {
		for key, value := range entries(rule) {
			switch key.Value {
			case "profile":
				f.Uses = append(f.Uses, f.word(value))
			case "services":
				f.readServices(value)
			}
		}
	}
}

func (f *File) readServices(services *yaml.Node) {
	for _, name := range services.Content {
		f.Services = append(f.Services, f.word(name))
	}
}

func (f *File) word(n *yaml.Node) Word { return Word{n.Value, f.at(n)} }

func (f *File) at(n *yaml.Node) ruleset.Source {
	return ruleset.Source{Layer: ruleset.LayerYAML, File: f.Name, Line: n.Line, Column: n.Column}
}

// entries are the keys and values of a mapping; none of anything else.
func entries(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}
