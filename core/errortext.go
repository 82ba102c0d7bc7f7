package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// ErrorText is what logs and traces may say of an error of this package: it names no
// key, but its [KeyHash]. It is made of texts that are known to name none: those of
// this package, what the network and TLS said, and of an error of Redis the code and
// what is known of the rest, because Redis quotes arguments in some. Of others it
// gives the type.
//
// The text of the error itself has everything, and is for nobody but the server's
// operators.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	var parts []string
	collectText(err, &parts)
	return strings.Join(parts, ": ")
}

// collectText walks through an error and what it wraps.
func collectText(err error, parts *[]string) {
	if taken, ok := err.(*NotAcquiredError); ok { //nolint:errorlint // only err itself
		addText(parts, taken.text(KeyHash(taken.Key)))
		if taken.Cause != nil {
			collectText(taken.Cause, parts)
		}
		return
	}
	if short, ok := err.(*ReplicationError); ok { //nolint:errorlint // likewise
		addText(parts, short.text())
		if short.Cause != nil {
			collectText(short.Cause, parts)
		}
		return
	}
	if text, ok := knownText(err); ok {
		addText(parts, text)
		return
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case mentionedError:
		collectText(e.of, parts)
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			collectText(cause, parts)
		}
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			collectText(cause, parts)
		}
	default:
		addText(parts, fmt.Sprintf("an error of type %T, whose text may name a key", err))
	}
}

// addText leaves out what was said already, and whose error it is.
func addText(parts *[]string, text string) {
	if len(*parts) > 0 && strings.HasPrefix((*parts)[0], ownPrefix) {
		text = strings.TrimPrefix(text, ownPrefix)
	}
	if !slices.Contains(*parts, text) {
		*parts = append(*parts, text)
	}
}

// knownText is the text of err itself if it names no key.
func knownText(err error) (string, bool) {
	fixed := []error{
		ErrNotAcquired, ErrUnavailable, ErrNotHeld, ErrLost, ErrReleased, ErrTooManyWaiters, ErrClosed, ErrInvalid,
		errLeaseOver, errLeaked, errNotMine, errTooLate, errSilent, errGhost, errBehind, errNoTurn, errRenewing,
		errSlowServer, errNoPermits, errFinal, errGoesOn, errNotExecuted, errUnconfirmed,
	}
	if slices.ContainsFunc(fixed, func(known error) bool { return err == known }) { //nolint:errorlint // only err itself
		return err.Error(), true
	}
	return redisstore.KnownText(err)
}

// text describes the failure without its cause, with a name of the key.
func (e *NotAcquiredError) text(key string) string {
	text := fmt.Sprintf("core: lock %q not acquired after %s", key, e.Waited.Round(time.Microsecond))
	switch {
	case e.OwnHold:
		text += fmt.Sprintf(" (held by another hold of this client, %s: if this call is inside it, use the context that Acquire or Do gave)", e.BlockedBy)
	case e.BlockedBy == redisstore.ModeField:
		text += " (its key is that of a read/write lock)"
	case e.BlockedBy != "":
		text += fmt.Sprintf(" (held by %s)", e.BlockedBy)
	}
	return text
}
