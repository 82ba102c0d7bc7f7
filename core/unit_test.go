package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

func TestAcquire_AsksWhetherAUnitIsMissing(t *testing.T) {
	t.Parallel()
	locks, err := core.New(nowhere(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	for _, c := range []struct {
		option core.AcquireOption
		want   string
	}{
		{core.WaitTime(3), "WaitTime(3ns): want 0, or 1ms to 87600h0m0s (is a unit missing? 3*time.Second)"},
		{core.LeaseTime(3), "LeaseTime(3ns): want 1ms to 87600h0m0s, or no lease for the watchdog (is a unit missing? 3*time.Second)"},
		{core.WaitTime(5000), "(is a unit missing? 5000*time.Millisecond or 5000*time.Second)"},
		{core.LeaseTime(300_000), "(is a unit missing? 300000*time.Millisecond)"},
		{core.WaitTime(-1), "WaitTime(-1ns): want 0, or 1ms to 87600h0m0s"},
		{core.LeaseTime(core.MaxDuration + time.Second), "or no lease for the watchdog"},
	} {
		_, _, err := locks.Lock("a").Acquire(t.Context(), c.option)
		if !errors.Is(err, core.ErrInvalid) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
