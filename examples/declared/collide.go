package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
)

// collision is two calls about the same thing: the second comes while the handler of
// the first one works.
type collision struct {
	locks         map[string]string // that Redis had meanwhile: key → holder and count
	first, second string            // the answers
	waited        time.Duration     // by the second caller
}

// collide has two callers meet.
func (d *demo) collide(ctx context.Context, subject string, first, second call) (c collision, err error) {
	inside := errors.New("the handler did not run")
	d.desk.during(subject, func() {
		if c.locks, inside = d.held(ctx); inside != nil {
			return
		}
		began := time.Now()
		c.second, inside = second(ctx, d.client, subject)
		c.waited = time.Since(began)
	})
	defer d.desk.take(subject) // in case nobody has
	c.first, err = first(ctx, d.client, subject)
	if err == nil {
		err = inside
	}
	return c, err
}

// whileTaken runs work while another program has a lock.
func (d *demo) whileTaken(ctx context.Context, name string, work func() error) error {
	d.out.linef("another program holds %s%s", d.backend.prefix, name)
	err := d.other.Lock(name).Do(ctx, func(context.Context) error { return work() }, core.WaitTime(5*time.Second))
	if err != nil {
		return fmt.Errorf("while another program holds %s: %w", name, err)
	}
	return nil
}

// want compares an answer with what was expected.
func want(what, got, expected string) error {
	if got != expected {
		return fmt.Errorf("%s: %s, want %s", what, got, expected)
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
