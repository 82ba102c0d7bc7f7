package history

// overruns finds fixed leases that holders trusted for longer than the leases can have lasted in
// Redis, counted from the latest possible moment of sending.
func (j *judge) overruns() {
	for _, e := range j.acquires {
		if e.Hold == nil || e.Ask.Renewed || e.Hold.Refreshed || e.Ask.Reentry || len(e.Keys) > 1 || j.mayBeReentered(e) {
			continue
		}
		if over := e.Hold.Alive - (e.End + e.Ask.Lease); over > 0 {
			j.reportf(Overrun, []*Event{e}, "%s trusted its lease of %s on %s for %s more", e.Owner, e.Ask.Lease, e.Keys[0], over)
		}
	}
}

// judgeForced finds holds that their holders trusted long after a force release, when every lease that
// Redis confirmed before that release must have expired.
func (j *judge) judgeForced() {
	for key, forces := range j.forces {
		for _, f := range forces {
			if f.Outcome != OK {
				continue
			}
			for _, e := range j.byKey[key] {
				j.forcedAway(f, e)
			}
		}
	}
}

func (j *judge) forcedAway(f, e *Event) {
	if e.Hold == nil || !frees(f, e) || e.Hold.Refreshed || j.mayBeReentered(e) || j.firstOf(e).End > f.Begin || e.Hold.Alive < f.End {
		return
	}
	if over := e.Hold.Alive - (f.End + e.longest()); over > 0 {
		j.reportf(Forced, []*Event{e, f}, "%s trusted %s for %s more than a lease after it was forced away", e.Owner, f.Keys[0], over)
	}
}

// judgeRuns finds fields that two processes had, and holds that were trusted for longer than the first
// lease of their run can have lasted. exclusion finds two holds of a run that overlap.
func (j *judge) judgeRuns() {
	for _, run := range j.runs {
		first := run[0]
		for _, e := range run[1:] {
			if e.Process != first.Process {
				j.reportf(TwoProcesses, []*Event{first, e}, "%s and %s had %s as %s, in two processes", first.Owner, e.Owner, e.Keys[0], e.Hold.Field)
			}
		}
		j.overrunsOf(run)
	}
}

// overrunsOf judges the holds of a run until a hold may have extended the lease.
func (j *judge) overrunsOf(run []*Event) {
	first := run[0]
	for _, e := range run {
		if e.Ask.Renewed || e.Hold.Refreshed || j.mayBeReentered(e) {
			return
		}
		if over := e.Hold.Alive - (first.End + first.longest()); over > 0 {
			j.reportf(RunOverrun, []*Event{first, e}, "%s trusted %s for %s more than the lease of %s lasts, with which %s began the run of %s",
				e.Owner, e.Keys[0], over, first.Ask.Lease, first.Owner, e.Hold.Field)
		}
	}
}
