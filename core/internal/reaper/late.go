package reaper

// LateAnswer is an acquire that was given up before it was answered. It is asked by one
// goroutine at a time.
type LateAnswer interface {
	// Late is what has become of it. It does not wait.
	Late() Outcome
}

// Outcome is what is known about an acquire. It is not relied on: on a connection that hangs
// the answer may never come.
type Outcome uint8

const (
	// Pending says that there is no answer so far.
	Pending Outcome = iota
	// Granted says that the field was in Redis. It cannot come back.
	Granted
	// Unchanged says that nothing was changed, and will not be: the lock was taken, Redis
	// answered with an error, or the command was never sent.
	Unchanged
	// Unknown says that there will be no answer.
	Unknown
)
