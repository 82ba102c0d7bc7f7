// Command schema writes the JSON Schema of a rule file for editors. Its fields,
// their types and their descriptions come from the Go types of package ruleset, so
// that a new field needs no work here unless its values are restricted. Run it with
// go generate in the folder of that package.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

const output = "locks.schema.json"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := generate()
	if err != nil {
		return err
	}
	return os.WriteFile(output, text, 0o644) //nolint:gosec // it is published
}

// generate is the text of the schema. It reads the comments of the current folder,
// which must be that of package ruleset.
func generate() ([]byte, error) {
	document, err := build()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(document)
	return text.Bytes(), err
}
