package redisstore

// Kind is a kind of lock as Redis sees it: its scripts, and its keys and its channel as they
// follow from the key of the lock. A kind is data. What one does not offer has the zero value,
// and nobody asks for its name to find out what it does.
type Kind struct {
	// Name is that of the kind, in rules, errors and metrics.
	Name string

	channel func(key string) string // of wake-ups; nil: it sends and awaits none
	counter func(key string) string // of fencing tokens; nil: a grant carries none

	acquire, acquireAll, hold, renew, refresh, release, handOff, force, state script
}

// Kinds are those that there are.
type Kinds struct {
	Reentrant *Kind // RLock
	Fenced    *Kind // RFencedLock
	Spin      *Kind // RedissonSpinLock
}

// NewKinds makes the kinds. One that differs from another in a script shares all else.
func NewKinds() Kinds {
	reentrant := Kind{
		Name: "reentrant", channel: Channel,
		acquire: newScript(acquireLua), acquireAll: newScript(acquireAllLua),
		hold: newScript(setHoldLua), renew: newScript(renewLua), refresh: newScript(refreshLua),
		release: newScript(releaseLua), handOff: newScript(handoffLua),
		force: newScript(forceLua), state: newScript(stateLua),
	}
	fenced := reentrant
	fenced.Name, fenced.counter = "fenced", tokenCounter
	fenced.acquire, fenced.acquireAll, fenced.handOff = newScript(acquireFencedLua), script{}, newScript(handoffFencedLua)

	spin := reentrant
	spin.Name, spin.channel, spin.acquireAll = "spin", nil, script{}
	return Kinds{Reentrant: &reentrant, Fenced: &fenced, Spin: &spin}
}

// Channel is where the wake-ups of a lock are published; empty if there are none.
func (k *Kind) Channel(key string) string {
	if k.channel == nil {
		return ""
	}
	return k.channel(key)
}

// Spins reports whether there are no wake-ups: who waits has to attempt again by itself.
func (k *Kind) Spins() bool { return k.channel == nil }

// TakesSeveral reports whether one script can take several keys.
func (k *Kind) TakesSeveral() bool { return k.acquireAll.source != nil }

// keys are what a script that grants the lock has to declare.
func (k *Kind) keys(key string) []any {
	if k.counter == nil {
		return []any{1, key}
	}
	return []any{2, key, k.counter(key)}
}
