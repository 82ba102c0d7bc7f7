package main

import (
	"context"
	"fmt"
	"net/http"
)

// reenter exchanges a saucer: the handler holds the lock, and restock re-enters it.
func reenter(ctx context.Context, d *demo) (string, error) {
	const work = "/items/saucer/exchange?for=1s"
	shop := d.gin[1]
	if err := d.stock.Write(ctx, "saucer", 1); err != nil {
		return "", err
	}
	d.curl(shop, work)
	exchange := inBackground(func() (*httpAnswer, error) { return shop.post(ctx, work, nil) })
	inside, err := d.await(ctx, "saucer", exchange.done, countIs("2"))
	if err != nil {
		return "", err
	}
	d.print(inside)
	answer, err := exchange.wait()
	if err != nil {
		return "", err
	}
	d.showHTTP(answer)
	after, err := d.await(ctx, "saucer", nil, isFree)
	if err == nil && answer.code != http.StatusOK {
		err = fmt.Errorf("HTTP %d, want 200", answer.code)
	}
	return fmt.Sprintf("count 2, then %d holders", len(after.fields)), err
}

func countIs(want string) func(lockState) bool {
	return func(s lockState) bool {
		_, count, err := s.holder()
		return err == nil && count == want
	}
}

func isFree(s lockState) bool { return len(s.fields) == 0 }
