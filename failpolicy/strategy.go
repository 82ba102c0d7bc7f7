package failpolicy

import (
	"slices"
)

// Strategy answers a call that does not acquire the lock. The zero value is not set, and acts like
// [Error].
//
//	strategy       in Go         meaning
//	error          Error         refuse, with the cause's status
//	skip           Skip          do not run, and report success: 204, OK with an empty reply
//	null_response  NullResponse  do not run, answer null or the rule's response: 200, OK
//	fallback       Fallback      run the handler registered under the rule's fallback
//	proceed        Proceed       run without the lock; counted
type Strategy string

// The strategies.
const (
	// Error refuses the call: the handler does not run, and the caller gets the cause's
	// status. It is the default.
	Error Strategy = "error"
	// Skip does not run the handler and reports a success without content.
	Skip Strategy = "skip"
	// NullResponse does not run the handler and answers null or the rule's response.
	NullResponse Strategy = "null_response"
	// Fallback runs the handler registered under the rule's fallback name instead.
	Fallback Strategy = "fallback"
	// Proceed runs the handler without the lock. It is never a default, and always counted.
	Proceed Strategy = "proceed"
)

// StatusHeader is the header by which a client recognizes an answer that was given without the lock. It is
// the same over HTTP, Connect and gRPC, where gRPC writes it in lower case.
const StatusHeader = "X-Lock-Status"

// The values of [StatusHeader].
const (
	MarkSkipped  = "skipped"  // the handler did not run because of strategy skip
	MarkNull     = "null"     // the handler did not run because of strategy null_response
	MarkUnlocked = "unlocked" // the handler ran without the lock because of strategy proceed
)

// Reply is a successful answer to a client although the handler did not run. Over gRPC the status is OK.
type Reply struct {
	Mark string // the value of StatusHeader
	HTTP int    // the HTTP status
	Body bool   // the reply contains the rule's response, or null or an empty message if the rule has none
}

// strategies is the table of strategies, in the order of the documentation. A new strategy is a
// constant, a row here, a line in the comment of [Strategy], and a value of Strategy in lock.proto.
var strategies = []struct { //nolint:gochecknoglobals // a table that is only read
	strategy Strategy
	reply    Reply    // zero for a strategy that refuses, or runs a handler
	others   []string // the names of the strategy in the Java annotation and other libraries
}{
	{strategy: Error, others: []string{"EXCEPTION", "FAIL_FAST", "THROW", "THROW_EXCEPTION", "FAIL", "REJECT"}},
	{Skip, Reply{Mark: MarkSkipped, HTTP: 204}, []string{"NOOP", "NONE"}},
	{NullResponse, Reply{Mark: MarkNull, HTTP: 200, Body: true}, []string{"RETURN_NULL", "NULL"}},
	{strategy: Fallback, others: []string{"CUSTOM", "CUSTOM_HANDLER"}},
	{strategy: Proceed, others: []string{"CONTINUE", "NO_OPERATION"}}, // NO_OPERATION of klock runs the method without the lock
}

// Strategies lists the strategies in the order of the documentation.
func Strategies() []Strategy {
	list := make([]Strategy, len(strategies))
	for i, row := range strategies {
		list[i] = row.strategy
	}
	return list
}

// Reply returns the answer of the strategy. It returns false for a strategy that refuses, or runs a handler.
func (s Strategy) Reply() (Reply, bool) {
	for i := range strategies {
		if strategies[i].strategy == s {
			return strategies[i].reply, strategies[i].reply.HTTP != 0
		}
	}
	return Reply{}, false
}

// ParseStrategy parses a strategy of a rule. Its error lists the known strategies and the strategy that was
// probably meant. ParseStrategy does not accept the words of the Java library, such as RETURN_NULL, but its
// error translates them.
func ParseStrategy(word string) (Strategy, error) {
	return parseWord("strategy", word, Strategies(), meantStrategy)
}

// meantStrategy returns the strategy that another library calls word.
func meantStrategy(word string) Strategy {
	for i := range strategies {
		if slices.Contains(strategies[i].others, word) {
			return strategies[i].strategy
		}
	}
	return ""
}

// OnLost is the effect of a loss of the lock on the running handler. The zero value
// is not set, and acts like [Cancel].
type OnLost string

// The effects of a loss.
const (
	// Cancel cancels the handler's context, with the loss as its cause. If the handler still
	// finishes, its result is kept. It is the default.
	Cancel OnLost = "cancel"
	// Ignore does not cancel the handler's context.
	Ignore OnLost = "ignore"
	// Fail is like Cancel, but the caller gets an error even if the handler returns a
	// result, because the outcome is unknown. An HTTP route needs WithBuffer for it.
	Fail OnLost = "fail"
)

// LossChoices lists the effects of a loss.
func LossChoices() []OnLost { return []OnLost{Cancel, Ignore, Fail} }

// ParseOnLost parses the effect of a loss. Its error lists the known words.
func ParseOnLost(word string) (OnLost, error) {
	return parseWord("on_lost", word, LossChoices(), javaOnLost)
}

// javaOnLost translates the Java library's words for a release timeout.
func javaOnLost(word string) OnLost {
	switch word {
	case "NO_OPERATION", "NOOP", "NONE", "CONTINUE":
		return Ignore
	case "EXCEPTION", "FAIL_FAST", "ERROR":
		return Fail
	default:
		return ""
	}
}
