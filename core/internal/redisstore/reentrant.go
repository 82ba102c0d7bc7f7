package redisstore

// newReentrant returns the kind of RLock.
//
//	key      hash with one field, the holder, and its hold count; its TTL is the lease
//	channel  redisson_lock__channel:{key}; a message is "0"
//
//	acquire:     token, acquire           takes a free lock
//	acquire_all: acquire_all              takes several free locks, or none
//	sethold:     sethold                  sets the hold count: re-entry and partial release
//	renew:       renew, renew_each        raises the TTL
//	refresh:     notify, refresh          sets the TTL
//	release:     notify, release          frees the lock
//	handoff:     token, notify, handoff   replaces the holder
//	force:       holder, notify, force    frees the lock, whichever client holds it
//	state:       state                    reads the lock
//	clear:       notify, clear(_each)     frees the lock of a holder whose acquire got no answer
func newReentrant() Kind {
	return Kind{
		Name: "reentrant", Family: "reentrant lock",
		names: names{channel: Channel},
		scripts: scripts{
			acquire: scriptOf("token", "acquire"), acquireAll: scriptOf("acquire_all"),
			hold: scriptOf("sethold"), renew: scriptOf("renew").each("renew_each"), refresh: scriptOf("notify", "refresh"),
			release: scriptOf("notify", "release"), handOff: scriptOf("token", "notify", "handoff"),
			force: scriptOf("holder", "notify", "force"), state: scriptOf("state"), clear: scriptOf("notify", "clear").each("clear_each"),
		},
	}
}

// newFenced returns the kind of RFencedLock: a reentrant lock whose acquire and hand-off always draw a
// token. The counter is at redisson_lock_token:{key} and is never deleted. No script takes several
// fenced locks.
func newFenced() *Kind {
	kind := newReentrant()
	kind.Name, kind.Family, kind.Fenced, kind.acquireAll = "fenced", "fenced lock", true, script{}
	return &kind
}

// newSpin returns the kind of RedissonSpinLock: a reentrant lock without a channel. No script takes
// several spin locks.
func newSpin() *Kind {
	kind := newReentrant()
	kind.Name, kind.Family, kind.Waits, kind.channel, kind.acquireAll = "spin", "spin lock", Spinning, nil, script{}
	return &kind
}
