// Fencing shows that a lock alone does not prevent a late write, but that a fencing token does if the store
// compares it.
//
//	go run -C examples/fencing .
//
// A process acquires the lock of an account with a lease of half a second and reads the balance. Then it is
// stopped with SIGSTOP, which has the same effect as a long garbage collection or a live migration of its
// machine. Its lease expires, and another process acquires the lock and pays. Then the first process
// continues and writes its computed balance. No lock library can prevent that, because the process was
// stopped after its last check of the clock. A table that compares tokens (fence.Table) refuses the write,
// and so does a hash in Redis (fence.Command). In a table that does not compare tokens, the payment is lost.
//
// Redis is embedded, and the database is SQLite in a temporary folder. The program exits with 1
// if a result is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// patience is the time limit of the program, which needs about a second.
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

// run runs the program or, with arguments, the process that is stopped.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch len(args) {
	case 0:
		return demonstrate(ctx, out)
	case 2:
		return lateHolder(ctx, args[0], args[1], in, out)
	default:
		return errors.New("unexpected argument: the program takes none")
	}
}
