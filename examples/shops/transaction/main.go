// Transaction puts the lock around the transaction: lock, begin, commit, unlock.
//
//	go -C examples run ./shops/transaction
//
// In the other order (begin, lock, unlock, commit) the lock is useless. A transaction that waits
// for the lock began before the holder committed and may read the old data. And the next holder
// starts before this one commits. In Gin, the order of the chain decides: guard, transaction,
// handler.
package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const deposits = 50 // deposits of 1, made at once

func main() { proof.Main("transaction", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	b := &bank{db: newDatabase()}
	var instances []*gin.Engine
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := b.routes(locks)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}
	deposit := func(path string) map[int]int {
		return proof.Tally(deposits, func(i int) int { return proof.Post(ctx, instances[i%2], path, "") })
	}

	p.Titlef("begin, lock, unlock, commit: %d deposits of 1, two instances", deposits)
	answers := deposit("/wrong/accounts/eve/deposit")
	balance := b.db.begin().read("eve")
	p.Checkf(answers[http.StatusNoContent] == deposits && balance < deposits, "all calls succeeded, and the balance is %d", balance)

	p.Titlef("lock, begin, commit, unlock")
	answers = deposit("/accounts/adam/deposit")
	balance = b.db.begin().read("adam")
	p.Checkf(answers[http.StatusNoContent] == deposits && balance == deposits, "all calls succeeded, and the balance is %d", balance)
	return nil
}

type bank struct{ db *database }

func (b *bank) routes(locks *core.Client) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	rule := ruleset.Rule{Key: "account:#{path.account}", WaitTime: 10 * time.Second}

	r.POST("/wrong/accounts/:account/deposit", b.inTransaction, guard.Handler(rule), deposit)
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/accounts/:account/deposit", rule, b.inTransaction, deposit),
		guard.Check(r))
}

type transactionKey struct{}

// inTransaction begins a transaction and commits it after the handlers succeed. Just before the
// commit, it checks the context, which is canceled if the lock was lost.
func (b *bank) inTransaction(c *gin.Context) {
	tx, before := b.db.begin(), c.Request
	ctx := context.WithValue(before.Context(), transactionKey{}, tx)
	c.Request = before.WithContext(ctx)
	c.Next()
	c.Request = before
	switch {
	case c.IsAborted(): // without a commit nothing is written: this is the rollback
	case ctx.Err() != nil:
		abort(c, ctx.Err())
	default:
		tx.commit()
	}
}

// deposit reads the balance, adds 1 and writes it back.
func deposit(c *gin.Context) {
	tx, ok := c.Request.Context().Value(transactionKey{}).(*transaction)
	if !ok {
		abort(c, errors.New("no transaction: add inTransaction to the chain"))
		return
	}
	account := c.Param("account")
	tx.write(account, tx.read(account)+1)
	c.Status(http.StatusNoContent)
}

func abort(c *gin.Context, err error) {
	_ = c.AbortWithError(http.StatusInternalServerError, err) //nolint:errcheck // returns its argument
}
