// Package fence makes a store refuse the write of a holder that has lost its lock without noticing.
//
// A process may be stopped for longer than its lease, by a debugger, a garbage collection or the migration of its
// machine. When it continues, it may still write. No lock can prevent that. A store can: it remembers the largest fencing
// token ([core.Hold.Token]) that has written, and refuses smaller ones. This package is the store's part:
//
//   - [Table] is for database/sql. Its statement is UPDATE … SET token = ? WHERE id = ? AND token <= ?.
//   - [Command] is for Redis. A script compares the token and runs one command.
//
// Every later grant of a lock has a larger token, and a re-entry has the token of the first acquisition. A smaller token
// is refused. An equal token passes, so the same holder may write again, and a write that is sent twice does no harm.
//
// All writers of a row or a key must hold the same lock. The tokens of two locks cannot be compared: a holder of one lock
// would get [ErrStale] because a holder of the other lock has written, although neither lock is lost.
//
// Claim first, then read, then write. If a holder reads before the store knows its token, an earlier holder may still
// change the value between the read and the write. [Table.Do] claims before it calls its function. In Redis a read by
// Command claims, too: Command(ctx, rdb, token, "GET", key).
//
// [core.Hold.Token]: https://pkg.go.dev/github.com/interlock-go/interlock/core#Hold.Token
package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrStale means that a holder with a larger token has already written. Nothing was written. If all writers use the
	// same lock, the hold with the smaller token is lost: stop, and do not try again with the same token.
	ErrStale = errors.New("fence: a later holder has written")

	// ErrNoToken means that the token is 0. Nothing was written. Either the lock was acquired without core.WithToken and
	// is not a FencedLock, or the handler runs without its lock (disabled, dry_run, proceed, a when that is false).
	ErrNoToken = errors.New("fence: no fencing token: acquire the lock with core.WithToken, or write token: true in its rule")
)

// maxToken is the largest token. Numbers in scripts of Redis are exact up to it, and package core draws no larger token.
const maxToken = 1<<53 - 1

// checkToken refuses a number that is not a token.
func checkToken(token int64) error {
	switch {
	case token == 0:
		return ErrNoToken
	case token < 0 || token > maxToken:
		return fmt.Errorf("fence: token %d: want the result of Hold.Token", token)
	default:
		return nil
	}
}
