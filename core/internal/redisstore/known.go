package redisstore

import (
	"slices"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// KnownText reports whether the text of err is known to name no key; see [wire.KnownText].
func KnownText(err error) (text string, ok bool) {
	fixed := []error{ErrUndetected, ErrNotALock, ErrCursor, errNode, errNoCluster, errNoScripts, errChecks, errBraces}
	if slices.ContainsFunc(fixed, func(known error) bool { return err == known }) { //nolint:errorlint // only err itself
		return err.Error(), true
	}
	return wire.KnownText(err)
}
