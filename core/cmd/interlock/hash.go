package main

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/core"
)

func newHash() *command {
	return &command{
		name:     "hash",
		synopsis: "KEY",
		summary:  "the hashed form of a key, as traces and logs show it",
		text: `Prints how traces and logs name a Redis key: the first 16 hexadecimal digits of
its SHA-256. The client's prefix is part of the key.

Example:
  interlock hash 'shop:order:pay:42'`,
		run: runHash,
	}
}

func runHash(_ context.Context, std streams, args []string) error {
	if len(args) != 1 {
		return usagef("%d arguments: write one key, in quotes if it has spaces", len(args))
	}
	fmt.Fprintln(std.out, core.KeyHash(args[0]))
	return nil
}
