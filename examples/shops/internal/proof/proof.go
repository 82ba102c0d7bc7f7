// Package proof contains the common parts of the programs of shops: a Redis, a crowd of callers
// and a verdict.
package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// patience is the time limit of a program, which needs a few seconds.
const patience = 30 * time.Second

// Main implements the main function of a program. It runs prove and exits with 0 if prove made at
// least one check, every check passed and there was no error. Otherwise it exits with 1.
func Main(name string, prove func(ctx context.Context, p *Proof) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, name, os.Args[1:], os.Stdout, prove)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL", name+":", err)
		os.Exit(1)
	}
}

// Proof collects the results of a program. Only one goroutine may call its methods.
type Proof struct {
	out            io.Writer
	backend        *backend
	closers        []func(context.Context) // called in reverse order
	checks, failed int
}

// Titlef begins a part of the program.
func (p *Proof) Titlef(format string, args ...any) {
	fmt.Fprintf(p.out, "\n"+format+"\n", args...)
}

// Sayf prints a result without a check.
func (p *Proof) Sayf(format string, args ...any) {
	fmt.Fprintf(p.out, "        "+format+"\n", args...)
}

// Checkf prints a result and whether it is correct.
func (p *Proof) Checkf(ok bool, format string, args ...any) {
	p.checks++
	mark := "  ok    "
	if !ok {
		p.failed++
		mark = "  WRONG "
	}
	fmt.Fprintf(p.out, mark+format+"\n", args...)
}

// run runs a program without exiting.
func run(ctx context.Context, name string, args []string, out io.Writer, prove func(context.Context, *Proof) error) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	url := flags.String("redis", "", "`URL` of a Redis to use, such as redis://localhost:6379. Default: an embedded one")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	backend, err := openBackend(*url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := &Proof{out: out, backend: backend}
	defer p.close()
	if err := prove(ctx, p); err != nil {
		return err
	}
	return p.verdict(name)
}

func (p *Proof) verdict(name string) error {
	switch {
	case p.checks == 0:
		return errors.New("nothing was checked")
	case p.failed > 0:
		return fmt.Errorf("%d of %d checks are wrong", p.failed, p.checks)
	}
	fmt.Fprintf(p.out, "\nPASS %s: all %d checks passed\n", name, p.checks)
	return nil
}
