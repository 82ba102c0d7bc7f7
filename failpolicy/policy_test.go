package failpolicy_test

import (
	"testing"

	"github.com/interlock-go/interlock/failpolicy"
)

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
