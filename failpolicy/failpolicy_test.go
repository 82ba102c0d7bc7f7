package failpolicy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestCause_Answers(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, c := range append(failpolicy.Causes(), "unheard-of") {
		s := c.Status()
		fmt.Fprintf(&text, "%-10s %3d %-18s %-24s strategy=%-5v\n  %s\n  %s\n",
			c, s.HTTP, s.GRPC, c.Reason(), c.AsksStrategy(), c.Type(), c.Title())
	}
	golden.Assert(t, text.String(), "answers.txt")
}

func TestPolicy_Strategy(t *testing.T) {
	t.Parallel()
	p := failpolicy.Policy{
		OnBusy: failpolicy.Skip, OnBackend: failpolicy.Proceed,
		OnKey: failpolicy.NullResponse, OnOverload: failpolicy.Fallback,
	}
	for cause, want := range map[failpolicy.Cause]failpolicy.Strategy{
		failpolicy.Busy:      failpolicy.Skip,
		failpolicy.Debounced: failpolicy.Skip,
		failpolicy.Backend:   failpolicy.Proceed,
		failpolicy.Key:       failpolicy.NullResponse,
		failpolicy.Overload:  failpolicy.Fallback,
		failpolicy.Lost:      failpolicy.Error,
		failpolicy.Canceled:  failpolicy.Error,
		failpolicy.Deadline:  failpolicy.Error,
	} {
		if got := p.Strategy(cause); got != want {
			t.Errorf("%s: got %s, want %s", cause, got, want)
		}
		if got := (&failpolicy.Policy{}).Strategy(cause); got != failpolicy.Error {
			t.Errorf("%s: the default is %s", cause, got)
		}
	}
}

func TestPolicy_Uses(t *testing.T) {
	t.Parallel()
	p := failpolicy.Policy{OnBusy: failpolicy.Fallback}
	for s, want := range map[failpolicy.Strategy]bool{
		failpolicy.Error: true, failpolicy.Fallback: true, failpolicy.Skip: false, failpolicy.Proceed: false,
	} {
		if got := p.Uses(s); got != want {
			t.Errorf("%s: got %v, want %v", s, got, want)
		}
	}
}

func TestStatuses_HalfAPairKeepsTheOther(t *testing.T) {
	t.Parallel()
	s := failpolicy.Statuses{
		Busy:     failpolicy.Status{HTTP: 423},
		Deadline: failpolicy.Status{GRPC: failpolicy.CodeAborted},
	}
	for cause, want := range map[failpolicy.Cause]failpolicy.Status{
		failpolicy.Busy:     {HTTP: 423, GRPC: failpolicy.CodeAborted},
		failpolicy.Deadline: {HTTP: 504, GRPC: failpolicy.CodeAborted},
		failpolicy.Backend:  {HTTP: 503, GRPC: failpolicy.CodeUnavailable},
		failpolicy.Canceled: {HTTP: 0, GRPC: failpolicy.CodeCancelled},
	} {
		if got := s.Status(cause); got != want {
			t.Errorf("%s: got %+v, want %+v", cause, got, want)
		}
	}
}

func TestStatuses_EachCauseCanBeChanged(t *testing.T) {
	t.Parallel()
	mark := func(n int) failpolicy.Status { return failpolicy.Status{HTTP: 400 + n, GRPC: failpolicy.CodeDataLoss} }
	s := failpolicy.Statuses{
		Busy: mark(1), Debounced: mark(2), Backend: mark(3), Key: mark(4),
		Overload: mark(5), Lost: mark(6), Deadline: mark(7),
	}
	for i, c := range []failpolicy.Cause{
		failpolicy.Busy, failpolicy.Debounced, failpolicy.Backend, failpolicy.Key,
		failpolicy.Overload, failpolicy.Lost, failpolicy.Deadline,
	} {
		if got := s.Status(c); got != mark(i+1) {
			t.Errorf("%s: got %+v, want %+v", c, got, mark(i+1))
		}
	}
}

func TestStatuses_ValidateReportsEveryCause(t *testing.T) {
	t.Parallel()
	s := failpolicy.Statuses{
		Busy: failpolicy.Status{HTTP: 200}, Backend: failpolicy.Status{HTTP: 302, GRPC: 42},
		Lost: failpolicy.Status{HTTP: -1}, Deadline: failpolicy.Status{HTTP: 600},
	}
	golden.Assert(t, s.Validate().Error()+"\n", "statuses.txt")
	ok := failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 400, GRPC: 1}, Lost: failpolicy.Status{HTTP: 599, GRPC: 16}}
	if err := ok.Validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range failpolicy.Strategies() {
		if got, err := failpolicy.ParseStrategy(string(s)); got != s || err != nil {
			t.Errorf("%s: got %q, %v", s, got, err)
		}
	}
	for word, want := range map[string]string{
		"EXCEPTION": "error", "FAIL_FAST": "error", "fail_fast": "error", "fail": "error", "reject": "error",
		"RETURN_NULL": "null_response", "CONTINUE": "proceed", "NO_OPERATION": "proceed", "ignore": "",
		"Error": "error", "NULL_RESPONSE": "null_response", "nullResponse": "null_response", "null-response": "null_response",
		"fallbak": "fallback", "Skip_": "skip", "sikp": "skip",
		"": "", "banana": "", "retry": "",
	} {
		_, err := failpolicy.ParseStrategy(word)
		var unknown *failpolicy.UnknownWordError
		if !errors.As(err, &unknown) {
			t.Errorf("%q: got %v, want an UnknownWordError", word, err)
			continue
		}
		if unknown.Suggestion != want {
			t.Errorf("%q: suggested %q, want %q", word, unknown.Suggestion, want)
		}
	}
}

func TestParseOnLost(t *testing.T) {
	t.Parallel()
	for _, o := range failpolicy.LossChoices() {
		if got, err := failpolicy.ParseOnLost(string(o)); got != o || err != nil {
			t.Errorf("%s: got %q, %v", o, got, err)
		}
	}
	for word, want := range map[string]string{"FAIL_FAST": "fail", "NO_OPERATION": "ignore", "cancle": "cancel", "error": "fail", "zzzzz": ""} {
		_, err := failpolicy.ParseOnLost(word)
		var unknown *failpolicy.UnknownWordError
		if !errors.As(err, &unknown) || unknown.Suggestion != want {
			t.Errorf("%q: got %v, want the suggestion %q", word, err, want)
		}
	}
}

func TestParseCode(t *testing.T) {
	t.Parallel()
	for c := failpolicy.CodeCancelled; c <= failpolicy.CodeUnauthenticated; c++ {
		if got, err := failpolicy.ParseCode(c.String()); got != c || err != nil {
			t.Errorf("%s: got %s, %v", c, got, err)
		}
	}
	for _, word := range []string{"OK", "aborted", "CANCELED", "17", ""} {
		if _, err := failpolicy.ParseCode(word); err == nil {
			t.Errorf("%q: accepted", word)
		}
	}
	if got := failpolicy.Code(99).String(); got != "CODE(99)" {
		t.Errorf("got %q", got)
	}
}

func TestValidate_ZeroIsNotSet(t *testing.T) {
	t.Parallel()
	if err := (failpolicy.Statuses{}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := failpolicy.ParseStrategy("x"); err == nil {
		t.Error("an unknown strategy was accepted")
	}
	if _, err := failpolicy.ParseOnLost("x"); err == nil {
		t.Error("an unknown on_lost was accepted")
	}
}

func FuzzNearest_GivesAKnownNameOrNone(f *testing.F) {
	f.Add("eror")
	f.Add("\xff\x00_-")
	f.Fuzz(func(t *testing.T, word string) {
		switch got := failpolicy.Nearest(word, []string{"error", "skip", "null_response"}); got {
		case "", "error", "skip", "null_response":
		default:
			t.Errorf("got %q", got)
		}
	})
}

func TestNearest_ExactSpellingWins(t *testing.T) {
	t.Parallel()
	names := []string{"order", "orders", "orderId", "order_id"}
	for _, name := range []string{"order", "orders"} {
		if got := failpolicy.Nearest(name, names); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
	if got := failpolicy.Nearest("orders_id", names); got != "orderId" {
		t.Errorf("got %q", got)
	}
}

// Where no name is near, the longest one that is in the word is meant.
func TestNearest_NameInTheWord(t *testing.T) {
	t.Parallel()
	names := []string{"fair", "read", "write", "fallback", "key", "read_only", "POST /orders"}
	for word, want := range map[string]string{
		"RFairLock": "fair", "redissonReadLock": "read", "RedissonReadOnlyLock": "read_only", "fallbackMethod": "fallback",
		"lockKey": "", "unfairness": "fair", "": "", "POST /orders/:id/refunds": "",
	} {
		if got := failpolicy.Nearest(word, names); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestSameName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orderId", "order_id", "OrderID", "order-id", "ORDER_ID", " order id "} {
		if !failpolicy.SameName("orderId", name) || !failpolicy.SameName(name, "orderId") {
			t.Errorf("%q is another name than orderId", name)
		}
	}
	for _, name := range []string{"", "order", "orderIds", "order.id", "0rderId"} {
		if failpolicy.SameName("orderId", name) {
			t.Errorf("%q is the same name as orderId", name)
		}
	}
}
