package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// demonstrate stops a holder beyond its lease, pays during that time, and checks the result of
// its late write.
func demonstrate(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "fencing")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "accounts.db")
	db, err := openAccounts(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.db.Close()) }()
	if err := db.create(ctx, 100); err != nil {
		return err
	}
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Close()
	locks, err := core.Open(server.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()

	late, err := startLate(ctx, server.URL(), path)
	if err != nil {
		return err
	}
	defer late.kill()
	return play(ctx, out, db, server.Client(), locks, late)
}

// play runs the demonstration.
func play(ctx context.Context, out io.Writer, db *accounts, rdb *redis.Client, locks *core.Client, late *process) error {
	line, err := late.line()
	if err != nil {
		return err
	}
	first, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the first holder has read a balance of 100, with token %d, and is stopped\n", first)
	if err := stop(late.Process); err != nil {
		return err
	}
	var second int64
	err = locks.FencedLock("account:42").Do(ctx, func(ctx context.Context) error {
		hold := core.MustHold(ctx, "account:42")
		second = hold.Token()
		return errors.Join(db.payFenced(ctx, 30, second), db.pay(ctx, 30), writeRedis(ctx, rdb, 70, second))
	}, core.WaitTime(30*time.Second))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "its lease has expired: the second holder, with token %d, has paid 30\n", second)
	said, err := late.resume()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the first holder continues, and writes 100 - 10:\n\t%s\n", strings.Join(said, "\n\t"))
	if kept, err := rdb.HGet(ctx, balanceKey, "euros").Int(); kept != 70 || err != nil {
		return fmt.Errorf("the balance in Redis is %d, %w, want 70", kept, err)
	}
	return check(ctx, out, db, first, second, said)
}

// check compares the results with the expected ones.
func check(ctx context.Context, out io.Writer, db *accounts, first, second int64, said []string) error {
	want := []string{"lost: true", "unfenced: written", "fenced: refused", "redis: refused", "release lost: true"}
	fenced, err := balance(ctx, db.db, "fenced")
	if err != nil {
		return err
	}
	unfenced, err := balance(ctx, db.db, "unfenced")
	switch {
	case err != nil:
		return err
	case second <= first:
		return fmt.Errorf("token %d after %d", second, first)
	case strings.Join(said, "|") != strings.Join(want, "|"):
		return fmt.Errorf("the first holder printed %q, want %q", said, want)
	case fenced != 70 || unfenced != 90:
		return fmt.Errorf("the balances are %d with fencing and %d without, want 70 and 90", fenced, unfenced)
	}
	fmt.Fprintln(out, "PASS fencing: the balance is 70 if tokens are compared; otherwise it is 90, and a payment of 30 is lost")
	return nil
}

// process is the holder that is stopped.
type process struct {
	*exec.Cmd

	in  io.WriteCloser
	out *bufio.Scanner
}

func startLate(ctx context.Context, url, path string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{Cmd: exec.CommandContext(ctx, self, url, path)}
	p.Stderr = os.Stderr
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(stdout)
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// line returns the next line that the process prints.
func (p *process) line() (string, error) {
	if !p.out.Scan() {
		return "", errors.Join(errors.New("the first holder has ended"), p.out.Err())
	}
	return p.out.Text(), nil
}

// resume lets the process write and returns its remaining output.
func (p *process) resume() (said []string, err error) {
	if _, err := io.WriteString(p.in, "write\n"); err != nil {
		return nil, err
	}
	if err := resume(p.Process); err != nil {
		return nil, err
	}
	for p.out.Scan() {
		said = append(said, p.out.Text())
	}
	return said, errors.Join(p.out.Err(), p.Wait())
}

// kill kills the process if it is still running. It ignores the result of the process.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}
