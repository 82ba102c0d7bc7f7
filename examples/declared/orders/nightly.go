package orders

import (
	"context"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Day is a day to close.
type Day struct{ Shop string }

// Report is about a closed day. It is empty if another instance closes the day.
type Report struct{ Text string }

// openNightly wraps a function in the rule that the file has for its name.
func (s *Service) openNightly(cfg Config) error {
	locks, err := aspect.New(cfg.Locks, aspect.WithSet(s.rules))
	if err != nil {
		return err
	}
	if s.CloseDay, err = aspect.Wrap(locks, ruleset.Rule{Endpoint: ruleset.Func("close-day")}, s.closeDay); err != nil {
		return err
	}
	return locks.Check() // when all functions are wrapped
}

func (s *Service) closeDay(ctx context.Context, day Day) (Report, error) {
	if err := s.work(ctx, day.Shop); err != nil {
		return Report{}, err
	}
	return Report{Text: "closed " + day.Shop}, nil
}
