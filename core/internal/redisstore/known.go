package redisstore

import (
	"context"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// KnownText reports whether the text of err is known to name no key: a reply without what
// Redis quotes, a fixed text of this package or of go-redis, or what the network said.
// What err wraps is not looked at.
func KnownText(err error) (text string, ok bool) {
	switch e := err.(type) { //nolint:errorlint // only err itself
	case redis.Error:
		return ReplyText(e.Error()), true
	case *net.OpError:
		return e.Error(), true
	case *ShortfallError:
		return e.Error(), true
	}
	if slices.ContainsFunc(fixed(), func(known error) bool { return err == known }) { //nolint:errorlint // likewise
		return err.Error(), true
	}
	return err.Error(), ofTheNetwork(err)
}

// fixed are the errors whose text is a constant.
func fixed() []error {
	return []error{
		errNoAnswer, ErrUndetected, ErrNotALock, ErrSilent, errNoPong, errNoConnection, errPending, errPipelineClosed,
		errHangs, errGarbled, errManyDials, errDialEnded, ErrCursor, errHookLeft, errForeign, errChanged, errNaming, errNode, errNoCluster, errNoScripts, errChecks, errBraces, errNoRoom, errNotAgain, ErrClient,
		redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrAutoPipelineQueueFull,
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, net.ErrClosed,
	}
}

// ofTheNetwork reports whether the type of err belongs to the packages that make
// connections, which know no keys.
func ofTheNetwork(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	return slices.Contains([]string{"net", "os", "syscall", "internal/poll"}, path) || strings.HasPrefix(path, "crypto/")
}
