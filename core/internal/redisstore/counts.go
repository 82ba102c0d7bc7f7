package redisstore

// newPlainSemaphore returns the kind of RSemaphore, whose permits have no lease and no holder.
//
//	key                   string: how many permits are available
//	{key}:interlock_ops   sorted set of the operations that were executed, by time, so that each is
//	                      executed once
//	channel               redisson_sc:{key}; a message is the number of available permits
//
// All scripts begin with semaphore.lua.
//
//	acquire:  once, take                         takes permits
//	count:    count                              reads the count
//	clear:    once, fill, settle_plain, settle   changes the count, each operation once
func newPlainSemaphore() *Kind {
	return &Kind{
		Name: "plain_semaphore", Family: "plain semaphore", Shares: Limited, Holds: Unheld,
		names: names{channel: SemaphoreChannel},
		scripts: scripts{
			acquire: scriptOf("semaphore", "once", "take"), count: scriptOf("semaphore", "count"), clear: settleScript("plain"),
			terms: func(args []any, t *Terms) []any {
				return appendStrings(appendStrings(append(args, t.channel, t.verb), t.Forget), t.Ghosts)
			},
		},
	}
}

// newLatch returns the kind of RCountDownLatch. A caller that waits for a latch acquires the latch when it is open.
//
//	key                   string: the count; the latch is open when it is absent
//	{key}:interlock_ops   as for a plain semaphore
//	channel               redisson_countdownlatch__channel__{key}, with braces around the whole key
//
// All scripts begin with semaphore.lua.
//
//	acquire:  await                              asks whether the latch is open
//	count:    count                              reads the count
//	force:    latch_force                        deletes the count
//	clear:    once, fill, settle_latch, settle   changes the count, each operation once
func newLatch() *Kind {
	return &Kind{
		Name: "latch", Family: "latch", Waits: Abreast, Shares: Unlimited, Holds: Unheld,
		names: names{channel: LatchChannel, braced: true},
		scripts: scripts{
			acquire: scriptOf("semaphore", "await"), count: scriptOf("semaphore", "count"),
			force: scriptOf("semaphore", "latch_force"), clear: settleScript("latch"),
		},
	}
}

// settleScript returns the script that executes the operations of a kind without leases.
func settleScript(kind string) script {
	return scriptOf("semaphore", "once", "fill", "settle_"+kind, "settle")
}
