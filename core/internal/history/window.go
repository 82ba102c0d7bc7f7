package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// windowLines is the maximum number of lines of a window.
const windowLines = 60

// Window describes the events around a violation, one line each: all events on its keys and all
// faults, from the begin of the first event that shows the violation to the end of the last.
func Window(events []Event, v Violation) string {
	var lines []line
	around := bounds(v)
	for i := range events {
		e := &events[i]
		guilty := slices.Contains(v.Events, e)
		if !guilty && (e.until() < around.from || e.Begin > around.to || !concerns(e, v)) {
			continue
		}
		lines = append(lines, describe(e, guilty)...)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", v.Rule, v.Text)
	for _, l := range shorten(lines) {
		fmt.Fprintln(&text, l)
	}
	return text.String()
}

// bounds returns the time of a violation: the overlap of its events, or the time between them.
func bounds(v Violation) span {
	around := span{v.Events[0].Begin, v.Events[0].until()}
	for _, e := range v.Events[1:] {
		around = span{max(around.from, e.Begin), min(around.to, e.until())}
	}
	return span{min(around.from, around.to), max(around.from, around.to)}
}

// concerns reports whether an event is related to a violation.
func concerns(e *Event, v Violation) bool {
	switch e.Kind {
	case Fault, Stall, Finish:
		return true
	case Acquire, Force, Look, Sample:
	}
	return slices.ContainsFunc(e.Keys, func(key string) bool {
		return slices.Contains(v.Events[0].Keys, key)
	})
}

// line is one moment of an event.
type line struct {
	at     time.Duration
	kind   EventKind
	who    string
	text   string
	guilty bool
}

func (l line) String() string {
	mark := " "
	if l.guilty {
		mark = "*"
	}
	return fmt.Sprintf("%s %12.6fs  %-7s %s", mark, l.at.Seconds(), l.who, l.text)
}

// shorten drops surplus lines, looks first, but never the events that show the violation.
func shorten(lines []line) []line {
	for _, kinds := range [][]EventKind{{Look, Sample}, {Acquire, Force, Fault, Stall, Finish}} {
		surplus := len(lines) - windowLines
		lines = slices.DeleteFunc(lines, func(l line) bool {
			if l.guilty || surplus <= 0 || !slices.Contains(kinds, l.kind) {
				return false
			}
			surplus--
			return true
		})
	}
	return lines
}

// describe returns the lines for the moments of an event.
func describe(e *Event, guilty bool) []line {
	who := fmt.Sprintf("p%d.g%d", e.Process, e.Goroutine)
	at := func(t time.Duration, format string, args ...any) line {
		return line{at: t, kind: e.Kind, who: who, text: fmt.Sprintf(format, args...), guilty: guilty}
	}
	if e.Kind != Acquire {
		return []line{at(e.Begin, "%s", describeOther(e))}
	}
	lines := []line{
		at(e.Begin, "%s asks for %s", e.Owner, describeAsk(e)),
		at(e.End, "%s: %s %s", e.Owner, e.Outcome, e.Note),
	}
	h := e.Hold
	if h == nil {
		return lines
	}
	lines[1].text += "as " + h.Field
	if h.Alive > e.End {
		lines = append(lines, at(h.Alive, "%s last found its context alive, safe for %s", e.Owner, h.Safe-h.Alive))
	}
	if h.Ended > 0 {
		lines = append(lines, at(h.Ended, "%s found its context ended: %s", e.Owner, h.Cause))
	}
	end := "releases"
	if h.Left > 0 {
		end = fmt.Sprintf("leaves for %s", h.Left)
	}
	return append(lines,
		at(h.Release.Begin, "%s %s", e.Owner, end),
		at(h.Release.End, "%s %s: %s %s", e.Owner, end, h.Release.Outcome, h.Release.Note))
}

func describeAsk(e *Event) string {
	text := strings.Join(e.Keys, "+")
	if e.Ask.Reentry {
		text += " again"
	}
	if e.Ask.Wait != NoWaitTime {
		text += fmt.Sprintf(", wait %s", e.Ask.Wait)
	}
	if e.Ask.Renewed {
		text += ", renewed"
	}
	text += fmt.Sprintf(", lease %s", e.Ask.Lease)
	if e.Ask.MaxHold > 0 {
		text += fmt.Sprintf(", at most %s", e.Ask.MaxHold)
	}
	if e.Ask.Cut > 0 {
		text += fmt.Sprintf(", canceled at %.6fs", e.Ask.Cut.Seconds())
	}
	return text
}

func describeOther(e *Event) string {
	took := e.End - e.Begin
	switch e.Kind {
	case Force:
		return fmt.Sprintf("force release of %s, %s: %s %s", e.Keys[0], took, e.Outcome, e.Note)
	case Look:
		return fmt.Sprintf("%s asks who holds %s, %s: %v %s", e.Owner, e.Keys[0], took, e.Fields, e.Note)
	case Sample:
		return fmt.Sprintf("redis has %s: %v, TTL %s", e.Keys[0], e.Fields, e.TTL)
	case Acquire, Fault, Stall, Finish:
	}
	return fmt.Sprintf("%s for %s %s", e.Kind, took, e.Note)
}
