// Command gen writes the dashboard to the file that its argument names.
package main

import (
	"fmt"
	"os"

	"github.com/interlock-go/interlock/examples/dashboards/board"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: gen FILE")
	}
	text, err := board.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], text, 0o644)
}
