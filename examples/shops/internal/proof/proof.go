// Package proof is what the programs of shops have in common: a Redis, a crowd of
// callers, and a verdict.
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

// patience is how long a program may take. It needs a few seconds.
const patience = 30 * time.Second

// Main is the whole main function of a program. It runs prove and exits: with 0 if
// prove checked something, every check held and there was no error, else with 1.
func Main(name string, prove func(ctx context.Context, p *Proof) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, name, os.Args[1:], os.Stdout, prove)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL", name+":", err)
		os.Exit(1)
	}
}

// Proof collects what a program shows. Its methods are for one goroutine.
type Proof struct {
	out            io.Writer
	backend        *backend
	closers        []func(context.Context) // run in reverse
	checks, failed int
}

// Titlef begins a part of the program.
func (p *Proof) Titlef(format string, args ...any) {
	fmt.Fprintf(p.out, "\n"+format+"\n", args...)
}

// Sayf prints what happened, without judging it.
func (p *Proof) Sayf(format string, args ...any) {
	fmt.Fprintf(p.out, "        "+format+"\n", args...)
}

// Checkf prints what was seen, and whether that is as promised.
func (p *Proof) Checkf(ok bool, format string, args ...any) {
	p.checks++
	mark := "  ok    "
	if !ok {
		p.failed++
		mark = "  WRONG "
	}
	fmt.Fprintf(p.out, mark+format+"\n", args...)
}

// run is a program without its process.
func run(ctx context.Context, name string, args []string, out io.Writer, prove func(context.Context, *Proof) error) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(out)
	url := flags.String("redis", "", "`URL` of a Redis, such as redis://localhost:6379; without it one is embedded")
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
	fmt.Fprintf(p.out, "\nPASS %s: all %d checks hold\n", name, p.checks)
	return nil
}
