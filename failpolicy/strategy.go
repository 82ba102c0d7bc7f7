package failpolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Strategy says what to do instead when the lock is not acquired. The zero value is
// "not set" and acts as [Error].
//
//	strategy       in Go         meaning
//	error          Error         refuse, with the cause's status
//	skip           Skip          do not run, and that is fine: 204, OK with an empty reply
//	null_response  NullResponse  do not run, answer null or the rule's response: 200, OK
//	fallback       Fallback      run the handler registered under the rule's fallback
//	proceed        Proceed       run without the lock; counted
type Strategy string

// The strategies.
const (
	// Error refuses: the handler does not run and the caller gets the cause's
	// status. The default.
	Error Strategy = "error"
	// Skip does not run the handler and calls that a success without content.
	Skip Strategy = "skip"
	// NullResponse does not run the handler and answers null, or the rule's
	// response.
	NullResponse Strategy = "null_response"
	// Fallback runs the handler registered under the rule's fallback name instead.
	Fallback Strategy = "fallback"
	// Proceed runs the handler without the lock. Never a default, always counted.
	Proceed Strategy = "proceed"
)

// Reply is how a client is answered well although the handler did not run. Over gRPC it is OK.
type Reply struct {
	Mark string // what the header X-Lock-Status says
	HTTP int    // the status
	Body bool   // the rule's response, or null or an empty message without one
}

// strategies is the table of strategies, in the order of the documentation. A new strategy is a
// constant, a row here, a line in the comment of [Strategy], and a value of Strategy in lock.proto.
var strategies = []struct { //nolint:gochecknoglobals // a table that is only read
	strategy Strategy
	reply    Reply    // zero for a strategy that refuses, or runs something
	others   []string // what the Java annotation and others call it, or the same
}{
	{strategy: Error, others: []string{"EXCEPTION", "FAIL_FAST", "THROW", "THROW_EXCEPTION", "FAIL", "REJECT"}},
	{Skip, Reply{Mark: "skipped", HTTP: 204}, []string{"NOOP", "NONE"}},
	{NullResponse, Reply{Mark: "null", HTTP: 200, Body: true}, []string{"RETURN_NULL", "NULL"}},
	{strategy: Fallback, others: []string{"CUSTOM", "CUSTOM_HANDLER"}},
	{strategy: Proceed, others: []string{"CONTINUE", "NO_OPERATION"}}, // of klock: the method runs, without the lock
}

// Strategies lists the strategies in the order of the documentation.
func Strategies() []Strategy {
	list := make([]Strategy, len(strategies))
	for i, row := range strategies {
		list[i] = row.strategy
	}
	return list
}

// Reply is the answer of the strategy; false for one that refuses, or runs something.
func (s Strategy) Reply() (Reply, bool) {
	for i := range strategies {
		if strategies[i].strategy == s {
			return strategies[i].reply, strategies[i].reply.HTTP != 0
		}
	}
	return Reply{}, false
}

// ParseStrategy reads a strategy as written in a rule. Its error names the known ones and
// the one probably meant. The words of the Java library (RETURN_NULL and so on) are
// recognised and translated, not accepted.
func ParseStrategy(word string) (Strategy, error) {
	return parseWord("strategy", word, Strategies(), meantStrategy)
}

// OnLost says what a loss of the lock does to the running handler. The zero value
// is "not set" and acts as [Cancel].
type OnLost string

// What a loss can do.
const (
	// Cancel ends the handler's context with the loss as its cause; the result of a
	// handler that finishes all the same is kept. The default.
	Cancel OnLost = "cancel"
	// Ignore lets the handler run on with a context that does not end.
	Ignore OnLost = "ignore"
	// Fail is Cancel, and the caller gets an error even when the handler returned a
	// result: the outcome is unknown. A route of HTTP needs WithBuffer for it.
	Fail OnLost = "fail"
)

// LossChoices lists what a loss can do.
func LossChoices() []OnLost { return []OnLost{Cancel, Ignore, Fail} }

// ParseOnLost reads what a loss does as written in a rule. Its error names the known words.
func ParseOnLost(word string) (OnLost, error) {
	return parseWord("on_lost", word, LossChoices(), javaOnLost)
}

// UnknownWordError says that a word is not one of the known ones.
type UnknownWordError struct {
	What       string   // what the word should have been: "strategy", "on_lost", "grpc code"
	Word       string   // as written
	Known      []string // the words to choose from
	Suggestion string   // the one probably meant; empty when nothing is near
}

// Error says what is wrong and what to write.
func (e *UnknownWordError) Error() string {
	text := fmt.Sprintf("unknown %s %q", e.What, e.Word)
	if e.Suggestion != "" {
		text += fmt.Sprintf(": write %q", e.Suggestion)
	}
	return text + " (one of " + strings.Join(e.Known, ", ") + ")"
}

// parseWord accepts exactly the known words. foreign translates habits from
// elsewhere, before spelling is considered.
func parseWord[T ~string](what, word string, known []T, foreign func(string) T) (T, error) {
	names := make([]string, len(known))
	for i, k := range known {
		if string(k) == word {
			return k, nil
		}
		names[i] = string(k)
	}
	suggestion := string(foreign(strings.ToUpper(strings.TrimSpace(word))))
	if suggestion == "" {
		suggestion = Nearest(word, names)
	}
	return "", &UnknownWordError{What: what, Word: word, Known: names, Suggestion: suggestion}
}

// meantStrategy gives the strategy that another library calls so.
func meantStrategy(word string) Strategy {
	for i := range strategies {
		if slices.Contains(strategies[i].others, word) {
			return strategies[i].strategy
		}
	}
	return ""
}

// javaOnLost gives what the Java library's release-timeout words mean.
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
