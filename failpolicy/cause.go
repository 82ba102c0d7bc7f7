package failpolicy

// Cause is the reason why a handler did not run under its lock to the end. It is
// a low-cardinality word, fit for a metric label. The zero value means that there
// was no reason: the lock was acquired.
type Cause string

// The causes. The first five are answered by a [Strategy]; the others are not.
const (
	// Busy: another holder kept the lock for the whole wait time.
	Busy Cause = "busy"
	// Debounced: the call came inside a debounce window, or while the first call
	// still ran.
	Debounced Cause = "debounced"
	// Backend: Redis did not answer, or could not tell. The lock is neither held
	// nor known to be taken.
	Backend Cause = "backend"
	// Key: the request yields no usable key.
	Key Cause = "key"
	// Overload: too many callers wait already.
	Overload Cause = "overload"

	// Lost: the lock ended under its running handler, or a shutdown did not wait for
	// it, and the rule asks for an error ([Fail]), or the handler gave up because of it.
	// What the handler did until then is done. Also: a call inside it asked for the same
	// lock again, or for another one, when it had ended; that call's handler does not
	// run, whatever its strategies say.
	Lost Cause = "lost"
	// Canceled: the caller is gone.
	Canceled Cause = "canceled"
	// Deadline: the caller's deadline is over.
	Deadline Cause = "deadline"
)

// Causes lists every cause, those with a strategy first.
func Causes() []Cause {
	return []Cause{Busy, Debounced, Backend, Key, Overload, Lost, Canceled, Deadline}
}

// AsksStrategy reports whether the cause is answered by a strategy of the rule.
// The others have one fixed answer.
func (c Cause) AsksStrategy() bool {
	switch c {
	case Busy, Debounced, Backend, Key, Overload:
		return true
	default:
		return false
	}
}

// String is the cause's word.
func (c Cause) String() string { return string(c) }
