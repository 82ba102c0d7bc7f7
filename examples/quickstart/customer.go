package main

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
)

// outcome is the result of a purchase.
type outcome string

const (
	sold    outcome = "sold"
	soldOut outcome = "sold out"
)

// buy buys one piece over the protocol of the instance. A result other than sold and sold
// out is an error.
func (i *instance) buy(ctx context.Context, item string) (outcome, error) {
	if i.conn == nil {
		return i.buyHTTP(ctx, item)
	}
	_, err := shoppb.NewShopClient(i.conn).Buy(ctx, &shoppb.BuyRequest{Item: item})
	switch status.Code(err) {
	case codes.OK:
		return sold, nil
	case codes.FailedPrecondition:
		return soldOut, nil
	default:
		return "", err
	}
}

func (i *instance) buyHTTP(ctx context.Context, item string) (outcome, error) {
	answer, err := i.post(ctx, "/items/"+item+"/buy", nil)
	if err != nil {
		return "", err
	}
	switch answer.code {
	case http.StatusOK:
		return sold, nil
	case http.StatusGone:
		return soldOut, nil
	default:
		return "", fmt.Errorf("HTTP %d: %s", answer.code, answer.body)
	}
}
