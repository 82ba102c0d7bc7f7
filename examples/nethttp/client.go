package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/interlock-go/interlock/core"
)

// try calls the service. Another program holds the locks of order 42 and of cart 7 for some
// time.
func (i *service) try(ctx context.Context, out io.Writer) error {
	c := &client{ctx: ctx, out: out, url: i.url}
	c.want("POST", "/orders/42/pay", "200", "order 42 is paid")
	err := i.locks.MultiLock("order:pay:42", "cart:7").Do(ctx, func(context.Context) error {
		fmt.Fprintln(out, "\nanother program pays order 42 and changes cart 7")
		c.want("POST", "/orders/42/pay", "409", "Retry-After", "application/problem+json", "This order is already being paid")
		c.want("POST", "/orders/43/pay", "200", "order 43 is paid")
		c.want("DELETE", "/carts/7", "202", "the cart will be deleted when it is free")
		fmt.Fprintln(out, "\nthe rule of orders has on_busy: skip from now on")
		if err := i.change("message: This order is already being paid", "on_busy: skip"); err != nil {
			return err
		}
		c.want("POST", "/orders/42/pay", "204", "X-Lock-Status: skipped")
		fmt.Fprintln(out, "\nthen a rule that matches no route")
		err := i.change("/orders/", "/order/")
		if err == nil {
			return errors.New("a reload with a rule that matches no route was not refused")
		}
		fmt.Fprintln(out, "  refused:", strings.ReplaceAll(err.Error(), i.file, "locks.yaml"))
		c.want("POST", "/orders/42/pay", "204", "X-Lock-Status: skipped")
		return nil
	}, core.WaitTime(0))
	fmt.Fprintln(out, "\nthe other program has finished")
	c.want("DELETE", "/carts/7", "200", "cart 7 is deleted")
	return errors.Join(append(c.wrong, err)...)
}

// change edits the rule file and reloads it at once.
func (i *service) change(old, text string) error {
	before, err := os.ReadFile(i.file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(i.file, bytes.ReplaceAll(before, []byte(old), []byte(text)), 0o600); err != nil {
		return err
	}
	return i.rules.Reload()
}

type client struct {
	ctx   context.Context //nolint:containedctx // the lifetime of the client
	out   io.Writer
	url   string
	wrong []error
}

// want sends a request, prints the answer and records missing texts.
func (c *client) want(method, path string, parts ...string) {
	answer, err := c.send(method, path)
	if err != nil {
		c.wrong = append(c.wrong, err)
		return
	}
	fmt.Fprintf(c.out, "  %s %s: %s\n", method, path, answer)
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			c.wrong = append(c.wrong, fmt.Errorf("%s %s: no %q in %s", method, path, part, answer))
		}
	}
}

// send sends a request. It returns the status, the headers about the lock and the body.
func (c *client) send(method, path string) (string, error) {
	r, err := http.NewRequestWithContext(c.ctx, method, c.url+path, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	answer := []string{response.Status}
	for _, name := range []string{"Retry-After", "X-Lock-Status", "Content-Type"} {
		if value := response.Header.Get(name); value != "" {
			answer = append(answer, name+": "+value)
		}
	}
	return strings.Join(append(answer, strings.TrimSpace(string(body))), ", "), err
}
