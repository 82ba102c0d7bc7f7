package core

import "github.com/interlock-go/interlock/core/internal/redisstore"

// checkToken refuses a fencing token of a lock that cannot have one: where the numbers of no
// single counter are in the order of the holders.
func (l Lock) checkToken() error {
	switch {
	case l.clients != nil:
		return invalidf("WithToken for a Redlock: each of its servers counts for itself: want a FencedLock on one server with replicas")
	case l.names != nil:
		return invalidf("WithToken for a MultiLock: each of its locks counts for itself: want one name, or to acquire the one that the token is for by itself")
	case l.kind.Shared():
		return invalidf("WithToken for a %s: several hold it at a time, and one token cannot order them: want %s", l.kind.Noun(), aloneOf(l.kind))
	}
	return nil
}

// aloneOf is what one holder has at a time, to take in place of a shared kind.
func aloneOf(kind *redisstore.Kind) string {
	if kind.Holds == redisstore.Reentrant {
		return "a WriteLock, or to leave the option out"
	}
	return "a FencedLock, or to leave the option out"
}

// checkToken refuses a re-entry that wants a token of an ownership without one: it is the same
// holder, so it cannot draw one now.
func (o *ownership) checkToken(req *request) error {
	if !req.token || o.token != 0 {
		return nil
	}
	return invalidf("WithToken: the context holds %q without a token, and a re-entry has that of the hold that it enters again: ask for the token there", o.lease.Key)
}
