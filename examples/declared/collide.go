package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
)

// collision is the result of two calls about the same subject. The second call arrives while the
// handler of the first one works.
type collision struct {
	locks         map[string]string // locks in Redis while the first handler works: key → holder and count
	first, second string            // the answers
	waited        time.Duration     // how long the second caller waited
	err           error
}

// collide makes two calls about the same subject.
func (d *demo) collide(ctx context.Context, subject string, first, second call) (collision, error) {
	met := make(chan collision, 1)
	d.desk.during(subject, func() { met <- d.meet(ctx, subject, second) })
	defer d.desk.take(subject) // if no caller took the task
	answer, err := first(ctx, d.client, subject)
	if err != nil {
		return collision{}, err
	}
	select {
	case c := <-met:
		c.first = answer
		return c, c.err
	default:
		return collision{}, fmt.Errorf("the first caller got %s, and the handler did not run", answer)
	}
}

// meet calls the endpoint a second time while the handler of the first caller works.
func (d *demo) meet(ctx context.Context, subject string, second call) (c collision) {
	if c.locks, c.err = d.readLocks(ctx); c.err != nil {
		return c
	}
	began := time.Now()
	c.second, c.err = second(ctx, d.client, subject)
	c.waited = time.Since(began)
	return c
}

// whileTaken runs work while another program holds a lock.
func (d *demo) whileTaken(ctx context.Context, name string, work func() error) error {
	d.out.linef("another program holds %s%s", d.backend.prefix, name)
	err := d.other.Lock(name).Do(ctx, func(context.Context) error { return work() }, core.WaitTime(5*time.Second))
	if err != nil {
		return fmt.Errorf("while another program holds %s: %w", name, err)
	}
	return nil
}

// want compares an answer with the expected one.
func want(what, got, expected string) error {
	if got != expected {
		return fmt.Errorf("%s: %s, want %s", what, got, expected)
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
