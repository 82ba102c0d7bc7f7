package redisstore

// newPermitSemaphore returns the kind of RPermitExpirableSemaphore, whose permits have leases. Each
// permit is a holder.
//
//	key            string: how many permits are available. Acquisitions that state the total give it a TTL, unless it
//	               exists without one
//	{key}:timeout  sorted set of the acquired permits, 16 bytes each, by the end of their lease in
//	               ms by the server's clock
//	channel        redisson_sc:{key}; a message is the number of available permits
//
// All scripts begin with semaphore.lua and permit.lua. Scripts that examine all permits follow
// permit_total.lua, which gives back the permits whose lease has expired. The scripts of an acquired permit
// declare the sorted set only, so the key may expire while a permit is renewed. Then permits are given back without a count, and the
// next acquisition that states the total makes it again.
//
//	acquire:  permit_acquire   takes a permit, and may first change the number of permits
//	count:    permit_count     counts the available and the acquired permits
//	clear:    once, fill, settle_permit, settle
//	                          changes the count, each operation once, and gives permits back
//	others:   permit_hold, permit_renew, permit_refresh, permit_release, permit_handoff,
//	         permit_force, permit_state
func newPermitSemaphore() *Kind {
	permit := func(operation string) script { return scriptOf("semaphore", "permit", "permit_"+operation) }
	total := func(operation string) script {
		return scriptOf("semaphore", "permit", "permit_total", "permit_"+operation)
	}
	return &Kind{
		Name: "semaphore", Family: "semaphore", Shares: Limited, Holds: Drawn,
		names: names{
			beside: func(key string) []any { return []any{PermitLeases(key)} }, leases: PermitLeases, channel: SemaphoreChannel,
		},
		scripts: scripts{
			acquire: total("acquire"), hold: permit("hold"), renew: permit("renew"), refresh: permit("refresh"),
			release: permit("release"), handOff: permit("handoff"), force: permit("force"), state: permit("state"),
			count: total("count"), clear: scriptOf("semaphore", "permit", "permit_total", "once", "fill", "settle_permit", "settle"),
			terms: permitTerms,
		},
	}
}

// permitTerms appends the number of permits to set, the channel and the command that notify waiters, and
// the permits of earlier attempts to give back.
func permitTerms(args []any, t *Terms) []any {
	args = append(args, t.Demand, t.channel, t.verb)
	for _, ghost := range t.Ghosts {
		args = append(args, Drawn.wire(ghost))
	}
	return args
}
