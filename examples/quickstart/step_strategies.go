package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
)

// refuseHTTP reserves a kettle with each strategy while another program holds its lock.
func refuseHTTP(ctx context.Context, d *demo) (string, error) {
	expected := []struct {
		path   string
		code   int
		status string // the header that marks answers without the lock
	}{
		{"reserve-or-fail", http.StatusConflict, ""},
		{"reserve-or-skip", http.StatusNoContent, failpolicy.MarkSkipped},
		{"reserve-or-null", http.StatusOK, failpolicy.MarkNull},
		{"reserve-or-queue", http.StatusAccepted, ""},
		{"reserve-anyway", http.StatusOK, failpolicy.MarkUnlocked},
	}
	var seen []string
	var wrong []error
	err := d.whileHeld(ctx, "kettle", func(ctx context.Context) error {
		for _, want := range expected {
			answer, err := d.reserveHTTP(ctx, want.path)
			if err != nil {
				return err
			}
			status := answer.header.Get(failpolicy.StatusHeader)
			seen = append(seen, withStatus(fmt.Sprint(answer.code), status))
			if answer.code != want.code || status != want.status {
				wrong = append(wrong, fmt.Errorf("%s: HTTP %d, lock status %q, want %d, %q", want.path, answer.code, status, want.code, want.status))
			}
		}
		return errors.Join(wrong...)
	})
	return strings.Join(seen, " "), err
}

func (d *demo) reserveHTTP(ctx context.Context, path string) (*httpAnswer, error) {
	path = "/items/kettle/" + path
	d.curl(d.gin[0], path)
	answer, err := d.gin[0].post(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	d.showHTTP(answer)
	return answer, nil
}

// refuseGRPC does the same over gRPC.
func refuseGRPC(ctx context.Context, d *demo) (string, error) {
	expected := []struct {
		method, code, reason, status string
	}{
		{shoppb.Shop_ReserveOrFail_FullMethodName, "ABORTED", failpolicy.Busy.Reason(), ""},
		{shoppb.Shop_ReserveOrSkip_FullMethodName, "OK", "", failpolicy.MarkSkipped},
		{shoppb.Shop_ReserveOrNull_FullMethodName, "OK", "", failpolicy.MarkNull},
		{shoppb.Shop_ReserveOrQueue_FullMethodName, "OK", "", ""},
		{shoppb.Shop_ReserveAnyway_FullMethodName, "OK", "", failpolicy.MarkUnlocked},
	}
	var seen []string
	var wrong []error
	err := d.whileHeld(ctx, "kettle", func(ctx context.Context) error {
		for _, want := range expected {
			answer := d.reserveGRPC(ctx, want.method)
			status := strings.Join(answer.header.Get(failpolicy.StatusHeader), ",")
			seen = append(seen, withStatus(answer.code(), status))
			if answer.code() != want.code || answer.reason() != want.reason || status != want.status {
				wrong = append(wrong, fmt.Errorf("%s: %s %s, lock status %q, want %s %s, %q",
					want.method, answer.code(), answer.reason(), status, want.code, want.reason, want.status))
			}
		}
		return errors.Join(wrong...)
	})
	return strings.Join(seen, " "), err
}

func (d *demo) reserveGRPC(ctx context.Context, method string) *grpcAnswer {
	d.grpcurl(d.grpc[0], method, `{"item": "kettle"}`)
	answer := d.grpc[0].invoke(ctx, method, &shoppb.ReserveRequest{Item: "kettle"}, &shoppb.ReserveReply{})
	d.showGRPC(answer)
	return answer
}

func withStatus(code, lockStatus string) string {
	if lockStatus == "" {
		return code
	}
	return code + "/" + lockStatus
}

// whileHeld runs work while another program holds the lock of an item.
func (d *demo) whileHeld(ctx context.Context, item string, work func(context.Context) error) error {
	return d.other.Lock(lockName(item)).Do(ctx, func(ctx context.Context) error {
		d.out.linef("another program holds %s", d.lockKey(item))
		return work(ctx)
	}, core.WaitTime(5*time.Second))
}
