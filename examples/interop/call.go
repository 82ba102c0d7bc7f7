package interop

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Args are the arguments of a request, by name. A list is separated by commas: see [List].
type Args map[string]string

// List returns an argument with several values.
func List(values ...string) string {
	escaped := make([]string, len(values))
	for i, v := range values {
		escaped[i] = url.QueryEscape(v)
	}
	return strings.Join(escaped, ",")
}

// Text returns an argument with a value.
func Text(value string) string { return url.QueryEscape(value) }

// Millis returns an argument with a duration.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// String returns the arguments in the form of a request.
func (a Args) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a)) {
		b.WriteString(" " + name + "=" + a[name])
	}
	return b.String()
}

// Answer is the answer of a thread to a request.
type Answer struct {
	// From and To are the times at which the thread started and finished the request, by the wall clock of the
	// machine, in whole microseconds.
	From, To time.Time
	// Value is the result; empty: none.
	Value string
	// Err is the exception, or the error that the process exited.
	Err error
}

// ErrJava is an exception of the Java program. Its text contains the class and the message.
var ErrJava = errors.New("java")

// parseAnswer reads "id ok|error from to value".
func parseAnswer(line string) (id string, a Answer, err error) {
	words := strings.Split(line, " ")
	if len(words) != 5 {
		return words[0], a, fmt.Errorf("not an answer: %q", line)
	}
	from, errFrom := micros(words[2])
	to, errTo := micros(words[3])
	value, errValue := url.QueryUnescape(words[4])
	a = Answer{From: from, To: to, Value: value}
	if words[1] != "ok" {
		a.Err = fmt.Errorf("%w: %s", ErrJava, value)
	}
	return words[0], a, errors.Join(errFrom, errTo, errValue)
}

func micros(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMicro(n), err
}

// patience is the time for which a test waits for an answer. It is longer than all waits in
// requests.
const patience = 90 * time.Second

// Call is a request in progress.
type Call struct {
	tb     testing.TB
	what   string
	done   chan struct{} // closed after answer is set
	answer Answer
}

func (c *Call) settle(a Answer) {
	c.answer = a
	close(c.done)
}

// Done is closed when the call has its answer.
func (c *Call) Done() <-chan struct{} { return c.done }

// Answer waits for the answer.
func (c *Call) Answer() Answer {
	c.tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		c.tb.Fatalf("java: %s: no answer for %s", c.what, patience)
	}
	return c.answer
}

// OK waits for the answer. It fails the test immediately if the answer is an exception.
func (c *Call) OK() Answer {
	c.tb.Helper()
	a := c.Answer()
	if a.Err != nil {
		c.tb.Fatalf("java: %s: %v", c.what, a.Err)
	}
	return a
}

// True waits for the answer and reports whether it is the text "true".
func (c *Call) True() bool {
	c.tb.Helper()
	return c.OK().Value == "true"
}

// Number waits for the answer and parses it as a number.
func (c *Call) Number() int64 {
	c.tb.Helper()
	n, err := strconv.ParseInt(c.OK().Value, 10, 64)
	if err != nil {
		c.tb.Fatalf("java: %s: %v", c.what, err)
	}
	return n
}
