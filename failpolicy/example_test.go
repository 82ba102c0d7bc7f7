package failpolicy_test

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

func ExamplePolicy_Decide() {
	policy := failpolicy.Policy{
		OnBackend: failpolicy.Skip,
		Statuses:  failpolicy.Statuses{Busy: failpolicy.Status{HTTP: 423}},
	}
	busy := policy.Decide(failpolicy.Busy)
	fmt.Println(busy.Strategy, busy.Status.HTTP, busy.Status.GRPC)
	fmt.Println(policy.Decide(failpolicy.Backend).Strategy)
	// Output:
	// error 423 ABORTED
	// skip
}

func ExampleRetryAfter() {
	hint := failpolicy.RetryAfter(failpolicy.Debounced, 2400*time.Millisecond, 0.5)
	fmt.Println("Retry-After:", failpolicy.RetryAfterSeconds(hint))
	// Output: Retry-After: 3
}
