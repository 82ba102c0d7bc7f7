// Fencing shows why a lock alone does not keep a late write out, and what does: a fencing
// token, which the store compares.
//
//	go run -C examples/fencing .
//
// A process takes the lock of an account with a lease of half a second, reads the balance, and
// is stopped (SIGSTOP), as a long garbage collection or a live migration of its machine does.
// Its lease ends; another process takes the lock, and pays. Then the first one goes on, and
// writes what it had computed. No lock of any library can prevent that: the process was
// stopped after its last look at the clock. In a table that compares tokens the write is
// refused; in one that does not, a payment is lost.
//
// Redis is embedded, the database is SQLite in a temporary folder. It exits with 1 if anything
// is not as it says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// patience is how long all of it may take. It needs about a second.
const patience = time.Minute

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL fencing:", err)
		os.Exit(1)
	}
}

// run is this program, or, with arguments, the process that is stopped.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch len(args) {
	case 0:
		return demonstrate(ctx, out)
	case 2:
		return lateHolder(ctx, args[0], args[1], in, out)
	default:
		return errors.New("no arguments are needed")
	}
}
