package aspect

import "github.com/interlock-go/interlock/core"

// WaitPreparer may be implemented by a [Call] that has something to do before it waits,
// such as reading the body of a request: a server does not notice before that the
// client has left. It is called at most once per Run, before the first lock for which
// the call may have to wait, and not if that lock would be refused at once.
type WaitPreparer interface {
	// BeforeWait gives what is to be done, nil if there is nothing.
	BeforeWait() (prepare func())
}

// prepareWait has the call do what it has to do before it waits for a lock.
func (r *run) prepareWait(rule *compiled, lock core.Lock) {
	if r.prepared || rule.wait == 0 {
		return
	}
	call, ok := r.call.(WaitPreparer)
	if !ok {
		return
	}
	prepare := call.BeforeWait()
	if prepare == nil || lock.Refusal(r.ctx, rule.options...) != nil {
		return // Acquire will say why
	}
	r.prepared = true
	prepare()
}

// early decides about a rule what is known without the variables that come late, if
// its keys need one: settled says that this is all, and passed how it ended.
func (r *run) early(f *frame) (passed, settled bool) {
	rule := f.rule
	if !rule.late {
		return false, false
	}
	for _, key := range rule.keys {
		if err := key.CheckWithout(r.variables(), r.point.site.Late...); err != nil {
			return r.noKey(f, err), true
		}
	}
	if rule.DryRun {
		return false, false
	}
	if err := r.point.aspect.locks.Refusal(r.ctx, rule.anyLock...); err != nil {
		return r.notAcquired(f, err), true
	}
	return false, false
}

// compileEarly finds out what of a rule is known before the variables that come late.
func (c *compiler) compileEarly(rule *compiled) {
	for _, key := range rule.keys {
		for _, variable := range c.site.Late {
			rule.late = rule.late || key.Uses(variable)
		}
	}
	rule.anyLock = rule.options
	if len(rule.keys) != 1 || rule.keys[0].IsList() { // several locks are not waited for at first
		rule.anyLock = []core.AcquireOption{core.WaitTime(0)}
	}
}
