// Facts prints the facts that the tables in the documentation must contain:
//
//	go run ./core/internal/readmetest/testdata/facts
//	go run ./core/internal/readmetest/testdata/facts templates <list
//
// The second form reads key templates, one per line, and prints their errors.
package main

import (
	"fmt"
	"os"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func main() {
	if len(os.Args) > 1 {
		checkTemplates()
		return
	}
	for _, s := range failpolicy.Strategies() {
		fmt.Println("strategy", s)
	}
	for _, c := range failpolicy.Causes() {
		fmt.Println("cause", c, c.Status().HTTP, c.Status().GRPC, fieldOf(c))
	}
	for _, o := range failpolicy.LossChoices() {
		fmt.Println("loss", o)
	}
	for _, k := range ruleset.Kinds() {
		fmt.Println("kind", k)
	}
	for _, name := range ruleset.Profiles() {
		r := resolve(ruleset.Rule{Profile: name})
		fmt.Println("profile", name, r.WaitTime, lease(r))
	}
	r := resolve(ruleset.Rule{})
	fmt.Println("default lease of a rule:", lease(r))
	fmt.Println("default strategy for every cause:", r.OnBusy)
	fmt.Println("default what a loss does:", r.OnLost)
	fmt.Println("default key format:", r.KeyFormat)
}

// fieldOf returns the field of a rule that sets the strategy for a cause, or "no".
func fieldOf(c failpolicy.Cause) string {
	const chosen = failpolicy.Skip // not the default of any cause
	for field, policy := range map[string]failpolicy.Policy{
		"OnBusy": {OnBusy: chosen}, "OnBackend": {OnBackend: chosen}, "OnKey": {OnKey: chosen}, "OnOverload": {OnOverload: chosen},
	} {
		if policy.Strategy(c) == chosen {
			return field
		}
	}
	return "no"
}

func resolve(r ruleset.Rule) *ruleset.Resolved {
	r.Key = "key"
	resolved, err := ruleset.Resolve([]ruleset.Rule{r})
	if err != nil {
		panic(err)
	}
	return resolved[0]
}

func lease(r *ruleset.Resolved) string {
	if r.LeaseTime == ruleset.Watchdog {
		return "watchdog"
	}
	return fmt.Sprintf("%ds", int(r.LeaseTime.Seconds()))
}
