package lockz

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// event is something that somebody may ask about afterwards: a lock that was not acquired, was
// lost, left at a shutdown or not released, or a handler without its lock.
type event struct {
	number int64
	at     time.Time
	what   string
	rule   string
	kind   core.Kind
	key    string
	holder string // whose hold it was, or who was in the way
	lasted time.Duration
	err    error
	trace  trace.TraceID
}

// The incidents: what should not happen. A refusal has its outcome instead.
const (
	whatLost          = "lost"
	whatLeft          = "left"
	whatLeaked        = "leaked"
	whatReleaseFailed = "release failed"
	whatRenewalFailed = "renewal failed"
	whatUnlocked      = "ran unlocked"
	whatReleased      = "force released"
)
