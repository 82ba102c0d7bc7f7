package failpolicy_test

import (
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/failpolicy"
)

func TestStatuses_Status_OneField(t *testing.T) {
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

func TestStatuses_Status(t *testing.T) {
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

func TestStatuses_Validate(t *testing.T) {
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

func TestStatuses_Validate_Zero(t *testing.T) {
	t.Parallel()
	if err := (failpolicy.Statuses{}).Validate(); err != nil {
		t.Error(err)
	}
}
