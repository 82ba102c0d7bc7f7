package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// contended is one key that everybody wants, callers in each of the processes.
func contended(name string, processes, callers int, held time.Duration) scenario {
	who := fmt.Sprintf("%d callers", callers)
	if processes > 1 {
		who = fmt.Sprintf("%d processes × %d callers", processes, callers)
	}
	who = fmt.Sprintf("%s, one key held %s", who, held)
	return scenario{
		name:       name,
		contenders: libraries(),
		measure: func(ctx context.Context, e env, c contender) (sample, error) {
			return measureContest(ctx, e, c, processes, &contest{
				Contender: c.name, Addr: e.addr, Key: e.key, Callers: callers, InAll: processes * callers, Hold: held,
				For: e.lasting(2 * time.Second),
			})
		},
		rows: contendedRows(name, who),
	}
}

func contendedRows(name, who string) []row {
	rate := row{title: who + ": locks/s", metric: "rate"}
	fairness := row{title: "… Jain's index of fairness", metric: "jain", digits: 3}
	sent := row{title: "… commands sent to Redis per lock", metric: "sent", digits: 1}
	executed := row{title: "… commands executed per lock, in scripts too", metric: "executed", digits: 1}
	longest := row{title: "… longest wait, ms", metric: "longest"}
	switch name {
	case "contended-0":
		rate.bar, fairness.bar, executed.bar = ratioToFastestPeer(1.4), atLeast(0.98), atMost(6)
	case "contended-1ms":
		rate.bar, fairness.bar, executed.bar = ratioToFastestPeer(1.05), atLeast(0.98), atMost(6)
	case "processes-0", "processes-1ms":
		fairness.bar = atLeast(0.9)
	case "crowd":
		rate.bar = ratioToFastestPeer(1.3)
	}
	failures := row{title: "… failed, or still waiting 10 s after the end", metric: "failures"}
	twoHolders := row{title: "… two holders at once", metric: "violations", bar: atMost(0)}
	return []row{rate, fairness, sent, executed, longest, failures, twoHolders}
}

func measureContest(ctx context.Context, e env, by contender, processes int, c *contest) (s sample, err error) {
	if c.Guard, err = newGuardFile(); err != nil {
		return nil, err
	}
	defer os.Remove(c.Guard)
	g, err := openGuard(c.Guard)
	if err != nil {
		return nil, err
	}
	defer g.close()

	before, err := countCommands(ctx, e.addr, by.sends)
	if err != nil {
		return nil, err
	}
	t, err := contendIn(ctx, processes, c)
	if err != nil {
		return nil, err
	}
	after, err := countCommands(ctx, e.addr, by.sends)
	if err != nil {
		return nil, err
	}
	if t.total() == 0 {
		return nil, errors.New("nobody got the lock: " + t.Failure)
	}
	if t.Failures > 0 {
		fmt.Fprintf(os.Stderr, "  %d failed, such as: %s\n", t.Failures, t.Failure)
	}
	turns := float64(g.page.entered.Load())
	return sample{
		"rate":       float64(t.total()) / c.For.Seconds(),
		"jain":       jain(t.Turns),
		"executed":   (after.executed - before.executed) / turns,
		"sent":       (after.sent - before.sent) / turns,
		"longest":    float64(t.Longest.Milliseconds()),
		"failures":   float64(t.Failures),
		"violations": float64(g.violated()),
	}, nil
}
